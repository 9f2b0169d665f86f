//! Compiles array schemas: prefix items, other items, and elements required by `contains`.

use jsonschema::canonical::{ArrayView, CanonicalSchema, CanonicalView, Distinctness};

use super::{
    compile::{Compiled, Compiler, TooManyNodes, count},
    hint::Hints,
    plan::{ArraySpec, ContainsRule, Node},
};

impl Compiler<'_> {
    pub(super) fn array(&mut self, schema: &CanonicalSchema, view: &ArrayView) -> Compiled {
        let mut fillers = view.items.clone();
        let mut approximate = false;
        let mut filled_prefix = view.prefix_items.clone();
        // Where matches are counted, other elements must not match by chance.
        for counted in view.contains.iter().filter(|c| c.max_contains.is_some()) {
            let Ok(outside) = counted.schema.negate() else {
                approximate = true;
                continue;
            };
            fillers = match &fillers {
                None => Some(outside.clone()),
                Some(items) => Some(items.intersect(&outside).unwrap_or_else(|_| {
                    approximate = true;
                    items.clone()
                })),
            };
            for slot in &mut filled_prefix {
                match slot.intersect(&outside) {
                    Ok(narrowed) if !matches!(narrowed.view(), CanonicalView::False) => {
                        *slot = narrowed;
                    }
                    _ => approximate = true,
                }
            }
        }
        let mut prefix = Vec::with_capacity(filled_prefix.len());
        for (position, slot) in filled_prefix.iter().enumerate() {
            prefix.push(self.compile_child(&position.to_string(), slot)?);
        }
        let rest = match &fillers {
            Some(items) => self.compile_child(Hints::ITEMS, items)?,
            None => self.anything()?,
        };
        let mut contains_rules = Vec::new();
        let mut contained: Option<CanonicalSchema> = None;
        for contains in &view.contains {
            let min = contains.min_contains.as_ref().map_or(1, count);
            // One element may satisfy several `contains`; requiring that saves elements under `maxItems`.
            let together = contained.as_ref().and_then(|contained| contained.intersect(&contains.schema).ok());
            let together = together.filter(|both| !matches!(both.view(), CanonicalView::False));
            if let (Some(both), true, Some(last)) = (together, min == 1, contains_rules.last_mut()) {
                *last = self.contains_rule(view, &both, 1)?;
                contained = Some(both);
                continue;
            }
            contains_rules.push(self.contains_rule(view, &contains.schema, min)?);
            contained = (min == 1 && contains.max_contains.is_none()).then(|| contains.schema.clone());
        }
        let array = ArraySpec {
            min: view.min_items.as_ref().map_or(0, count),
            max: view.max_items.as_ref().map_or(usize::MAX, count),
            prefix,
            rest,
            contains_rules,
            distinct: view.distinctness == Distinctness::AllDistinct,
            repeated: view.distinctness == Distinctness::SomeRepeated,
        };
        approximate |= array.repeated || array.contains_rules.len() > 1;
        self.exact &= !approximate;
        let node = self.add(Node::Array(Box::new(array)))?;
        if approximate {
            return self.checked(vec![node], schema);
        }
        Ok(node)
    }

    fn contains_rule(
        &mut self,
        view: &ArrayView,
        wanted: &CanonicalSchema,
        min: usize,
    ) -> Result<ContainsRule, TooManyNodes> {
        let meet = |slot: &CanonicalSchema| slot.intersect(wanted).unwrap_or_else(|_| wanted.clone());
        let mut prefix = Vec::with_capacity(view.prefix_items.len());
        for slot in &view.prefix_items {
            prefix.push(self.schema(&meet(slot))?);
        }
        let rest = match &view.items {
            Some(items) => self.schema(&meet(items))?,
            None => self.schema(wanted)?,
        };
        Ok(ContainsRule { min, prefix, rest })
    }
}
