//! Measures how fast arguments are generated, and how many of them are valid.
//!
//! `cargo bench --bench generate` measures over the schemas that the tests use. With
//! `SCHEMAS=<path>` it first runs over other schemas: a file with one JSON object per line (the schema
//! under `inputSchema`), or a folder of the official JSON-Schema-Test-Suite (`tests/draft7`, ...),
//! and prints how many instances were generated and valid, and how long that took.
#![expect(clippy::print_stdout, reason = "the results are printed to the terminal")]

use std::{
    env, fs,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput, criterion_group};
use mcp_conformance::fuzz::{
    ChoiceSequence, CoverageGoal, Dialect, Domain, Generator, Random, Shrinker, Simplest, ToolSchema, ViolationError,
};
use serde_json::Value;

const INSTANCES: u32 = 1_000;

struct Sample {
    name: String,
    schema: Value,
    default: Dialect,
    domain: Domain,
}

fn from_lines(path: &Path) -> Vec<Sample> {
    let text = fs::read_to_string(path).expect("the file of schemas is readable");
    let mut samples: Vec<Sample> = Vec::new();
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).expect("a line of JSON");
        let schema = entry["inputSchema"].clone();
        if samples.iter().any(|known| known.schema == schema) {
            continue;
        }
        samples.push(Sample {
            name: format!("{} {}", entry["server"], entry["tool"]),
            schema,
            default: Dialect::Draft202012,
            domain: Domain::Arguments,
        });
    }
    samples
}

fn from_suite(folder: &Path) -> Vec<Sample> {
    let default = match folder.file_name().and_then(|name| name.to_str()) {
        Some("draft4") => Dialect::Draft4,
        Some("draft6") => Dialect::Draft6,
        Some("draft7") => Dialect::Draft7,
        Some("draft2019-09") => Dialect::Draft201909,
        _ => Dialect::Draft202012,
    };
    let mut samples = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        let entries = fs::read_dir(&folder).expect("the folder of the suite is readable");
        for entry in entries {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a file of the suite is readable");
            let groups: Value = serde_json::from_str(&text).expect("a file of JSON");
            for group in groups.as_array().into_iter().flatten() {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                samples.push(Sample {
                    name: format!("{stem}: {}", group["description"]),
                    schema: group["schema"].clone(),
                    default,
                    domain: Domain::Any,
                });
            }
        }
    }
    samples.sort_by(|left, right| left.name.cmp(&right.name));
    samples
}

fn run_valid(samples: &[Sample]) {
    let mut compiled = Vec::new();
    let mut compiling = Duration::ZERO;
    let mut slowest = (Duration::ZERO, "");
    for sample in samples {
        let start = Instant::now();
        let schema = ToolSchema::compile_for(&sample.schema, sample.default, sample.domain);
        let spent = start.elapsed();
        compiling += spent;
        if spent > Duration::from_millis(50) {
            println!("slow          {}: compiled in {spent:?}", sample.name);
        }
        slowest = slowest.max((spent, &sample.name));
        match schema {
            Ok(schema) => compiled.push((sample, schema)),
            Err(error) => println!("not compiled  {}: failed to {error}", sample.name),
        }
    }
    println!(
        "{} of {} schemas compiled in {compiling:?}, the slowest in {:?} ({})",
        compiled.len(),
        samples.len(),
        slowest.0,
        slowest.1
    );
    let mut rates: Vec<(f64, &String)> = Vec::new();
    let mut impossible = 0;
    let mut total = (0_u32, Duration::ZERO);
    for (sample, schema) in &compiled {
        if schema.is_unsatisfiable() {
            impossible += 1;
            println!("unsatisfiable {}", sample.name);
            continue;
        }
        if let Err(error) = schema.minimal() {
            println!("no minimum    {}: failed to {error}", sample.name);
        }
        let mut random = Random::new(1);
        let start = Instant::now();
        let made = (0..INSTANCES).filter(|_| schema.generate(&mut random).is_ok()).count();
        let spent = start.elapsed();
        let made = u32::try_from(made).unwrap_or(INSTANCES);
        if made < INSTANCES {
            println!("generated     {}: {made} of {INSTANCES}", sample.name);
        }
        if made > 0 {
            rates.push((f64::from(made) / spent.as_secs_f64(), &sample.name));
        }
        total = (total.0 + made, total.1 + spent);
    }
    rates.sort_by(|left, right| left.0.total_cmp(&right.0));
    let count = u32::try_from(rates.len()).map_or(f64::NAN, f64::from);
    let mean = rates.iter().map(|rate| rate.0).sum::<f64>() / count;
    println!(
        "{} generate, {impossible} unsatisfiable; valid instances a second: mean of rates {mean:.0}, \
         overall {:.0}, median {:.0}, slowest {:?}",
        rates.len(),
        f64::from(total.0) / total.1.as_secs_f64(),
        rates[rates.len() / 2].0,
        &rates[..3.min(rates.len())],
    );
}

/// Violates every constraint on its own, and checks the instances against the original schema.
fn run_violations(samples: &[Sample]) {
    let (mut constraints, mut vacuous, mut violated, mut made) = (0_u32, 0_u32, 0_u32, 0_u32);
    let mut compiling = Duration::ZERO;
    let mut spent = Duration::ZERO;
    let mut named = 0_u32;
    for sample in samples {
        let schema = ToolSchema::compile_for(&sample.schema, sample.default, sample.domain);
        let Ok(schema) = schema else { continue };
        if schema.is_unsatisfiable() {
            continue;
        }
        for constraint in schema.constraints() {
            constraints += 1;
            let start = Instant::now();
            let generator = schema.violating(&constraint);
            let took = start.elapsed();
            compiling += took;
            if took > Duration::from_millis(500) {
                println!("slow          {} {constraint}: {took:?}", sample.name);
            }
            let generator = match generator {
                Ok(generator) => generator,
                Err(ViolationError::NoEffect | ViolationError::AdmitsNoMore) => {
                    vacuous += 1;
                    continue;
                }
                Err(error) => {
                    println!("not violated  {} {constraint}: failed to {error}", sample.name);
                    continue;
                }
            };
            violated += 1;
            let mut random = Random::new(2);
            for _ in 0..20 {
                let start = Instant::now();
                let instance = generator.generate(&mut random);
                spent += start.elapsed();
                if let Ok(instance) = instance {
                    made += 1;
                    assert!(!schema.is_valid(&instance), "{} {constraint}", sample.name);
                }
            }
            if generator.generate(&mut Simplest).is_ok() {
                named += 1;
            }
        }
    }
    println!(
        "{constraints} constraints: {vacuous} without effect, {violated} of the other {} violated \
         alone ({:.2} %), {named} by a simplest instance; compiled in {compiling:?}; {made} of {} \
         instances in {spent:?}",
        constraints - vacuous,
        f64::from(violated) * 100.0 / f64::from((constraints - vacuous).max(1)),
        violated * 20,
    );
}

/// Covers every boundary and branch, and pairs of them.
fn run_coverage(samples: &[Sample]) {
    let start = Instant::now();
    let (mut counts, mut met, mut pairs, mut paired) = (Vec::new(), 0, 0, 0);
    for sample in samples {
        let schema = ToolSchema::compile_for(&sample.schema, sample.default, sample.domain);
        let Ok(schema) = schema else { continue };
        let obligations = schema.valid().coverage_goals();
        counts.push(obligations.len());
        for obligation in &obligations {
            if schema.valid().cover(obligation).is_some() {
                met += 1;
            } else {
                println!("not covered   {} {} {}", sample.name, obligation.path(), obligation.description());
            }
        }
        let combined = schema.valid().pairwise_goals();
        pairs += combined.len();
        let meets = |pair: &&CoverageGoal| schema.valid().cover(pair).is_some();
        paired += combined.iter().filter(meets).count();
    }
    counts.sort_unstable();
    println!(
        "{met} of {} boundaries and branches covered (median {} per schema, maximum {}), and {paired} of \
         {pairs} rows of pairs, in {:?}",
        counts.iter().sum::<usize>(),
        counts[counts.len() / 2],
        counts[counts.len() - 1],
        start.elapsed(),
    );
}

/// The schemas of the unit tests.
fn own_samples() -> Vec<Sample> {
    let samples: Value = serde_json::from_str(include_str!("../src/fuzz/samples.json")).expect("the samples are JSON");
    let samples = samples.as_array().into_iter().flatten();
    samples
        .map(|sample| Sample {
            name: sample["name"].as_str().unwrap_or_default().to_owned(),
            schema: sample["schema"].clone(),
            default: Dialect::Draft202012,
            domain: Domain::Arguments,
        })
        .collect()
}

fn generate(criterion: &mut Criterion) {
    let samples = own_samples();
    criterion.bench_function("compile every sample", |bencher| {
        bencher.iter(|| {
            for sample in &samples {
                let schema = ToolSchema::compile(&sample.schema, sample.default);
                black_box(schema.expect("the samples compile"));
            }
        });
    });
    let compiled: Vec<ToolSchema> = samples
        .iter()
        .map(|sample| ToolSchema::compile(&sample.schema, sample.default).expect("the samples compile"))
        .collect();
    for (sample, schema) in samples.iter().zip(&compiled) {
        let mut random = Random::new(1);
        let mut group = criterion.benchmark_group("valid");
        group.throughput(Throughput::Elements(1));
        group.bench_function(&sample.name, |bencher| {
            bencher.iter(|| schema.generate(&mut random));
        });
        group.finish();
    }
    let scalars = &compiled[0];
    let generators: Vec<Generator> =
        scalars.constraints().iter().filter_map(|constraint| scalars.violating(constraint).ok()).collect();
    criterion.bench_function("violate every constraint of one sample", |bencher| {
        let mut random = Random::new(1);
        bencher.iter(|| {
            for generator in &generators {
                black_box(generator.generate(&mut random).expect("an instance"));
            }
        });
    });
    criterion.bench_function("shrink one instance", |bencher| {
        bencher.iter(|| {
            let mut shrinker = Shrinker::new(scalars.valid().clone(), ChoiceSequence::record(9)).expect("an instance");
            while shrinker.simplify() {}
            black_box(shrinker.best().clone())
        });
    });
}

criterion_group!(benches, generate);

fn main() {
    if let Some(path) = env::var_os("SCHEMAS") {
        let path = Path::new(&path);
        let samples = if path.is_dir() { from_suite(path) } else { from_lines(path) };
        run_valid(&samples);
        run_violations(&samples);
        run_coverage(&samples);
    }
    benches();
}
