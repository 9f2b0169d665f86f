
"use strict";
(() => {
  // Everything is in the page already; this only shows and hides, opens and copies. It never makes markup.
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const form = document.getElementById("filters");
  const counted = document.getElementById("shown");
  const said = document.getElementById("said");
  const fields = all("select, input", form);
  const has = (list, word) => list.split(" ").includes(word);

  const tools = fields.find((field) => field.name === "tool");
  const numbers = new Map([...tools.options].slice(1).map((option, index) => [option.value, String(index)]));
  const columns = new Map([...fields.find((field) => field.name === "revision").options].slice(1)
    .map((option, index) => [option.value, index]));

  const findings = all(".finding").map((element) => ({ element, ...element.dataset }));
  const groups = all(".group").map((element) => ({ element, findings: all(".finding", element) }));
  const areas = all(".area").map((element) => ({ element, area: element.dataset.area, cases: Number(element.dataset.cases), rows: null }));
  const text = (item) => (item.text ??= item.element.textContent.toLowerCase());

  // The rows are many: they are looked at when a filter first asks for them.
  const rowsOf = (area) => (area.rows ??= all("tbody tr", area.element).map((element) => ({
    element,
    verdicts: [...element.cells].slice(1).map((cell) => cell.className),
    levels: element.dataset.levels ?? "",
    tools: element.dataset.tools ?? "",
  })));

  const fitsFinding = (wanted, finding) =>
    (!wanted.level || finding.level === wanted.level) &&
    (!wanted.verdict || finding.verdict === wanted.verdict) &&
    (!wanted.area || has(finding.areas, wanted.area)) &&
    (!wanted.revision || has(finding.revisions, wanted.revision)) &&
    (!wanted.tool || has(finding.tools, numbers.get(wanted.tool))) &&
    (!wanted.mark || (wanted.mark === "steady"
      ? !finding.element.matches(".flaky, .accepted") : finding.element.classList.contains(wanted.mark))) &&
    (!wanted.q || text(finding).includes(wanted.q.toLowerCase()) ||
      finding.element.parentElement.firstElementChild.textContent.toLowerCase().includes(wanted.q.toLowerCase()));

  const fitsRow = (wanted, row) => {
    const verdicts = wanted.revision ? [row.verdicts[columns.get(wanted.revision)]] : row.verdicts;
    return verdicts.some((verdict) => verdict && (!wanted.verdict || verdict === wanted.verdict)) &&
      (!wanted.level || has(row.levels, wanted.level)) &&
      (!wanted.tool || has(row.tools, numbers.get(wanted.tool))) &&
      (!wanted.q || text(row).includes(wanted.q.toLowerCase()));
  };

  const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;
  let filtered = false;
  const apply = (wanted) => {
    const active = fields.some((field) => wanted[field.name]);
    let found = 0;
    for (const finding of findings) {
      const fits = fitsFinding(wanted, finding);
      finding.element.hidden = !fits;
      found += fits ? 1 : 0;
    }
    for (const group of groups) {
      group.element.hidden = group.findings.every((element) => element.hidden);
    }
    let cases = 0;
    let whole = 0;
    // Whether a case has a mark is said by its findings alone.
    const ask = { ...wanted, mark: "" };
    for (const area of areas) {
      whole += area.cases;
      // Nothing was hidden yet, and nothing is to be.
      if (!active && !area.rows) {
        cases += area.cases;
        continue;
      }
      const rows = rowsOf(area);
      const fits = !wanted.area || area.area === wanted.area;
      let here = 0;
      for (const row of rows) {
        const shown = fits && fitsRow(ask, row);
        if (row.element.hidden === shown) row.element.hidden = !shown;
        here += shown ? 1 : 0;
      }
      area.element.hidden = here === 0;
      // Few rows are shown as they are; many stay a line that can be opened.
      if (active) area.element.open = here > 0 && here <= 60;
      else if (filtered) area.element.open = false;
      cases += here;
    }
    filtered = active;
    for (const element of all(".fuzz")) {
      element.hidden = Boolean(wanted.revision) && element.dataset.revision !== wanted.revision;
    }
    for (const note of all(".nothing")) {
      const section = note.parentElement;
      const items = all(section.id === "results" ? ".area" : ".group", section);
      note.hidden = items.length === 0 || items.some((element) => !element.hidden);
    }
    counted.value = active
      ? `${found} of ${plural(findings.length, "finding", "findings")}, ${cases} of ${plural(whole, "case", "cases")}`
      : `${plural(findings.length, "finding", "findings")}, ${plural(whole, "case", "cases")}`;
    for (const field of fields) field.classList.toggle("set", Boolean(wanted[field.name]));
    label();
  };

  // The filters and the finding that is shown stand in the fragment, so that a link leads to the same sight.
  const read = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const wanted = () => Object.fromEntries(fields.map((field) => [field.name, field.value]));
  const write = (show) => {
    const words = new URLSearchParams(Object.entries(wanted()).filter(([, value]) => value));
    if (show) words.set("show", show);
    const fragment = words.toString();
    history.replaceState(null, "", fragment ? `#${fragment}` : location.href.split("#")[0]);
  };

  const reveal = (name) => {
    const element = document.getElementById(`f-${name}`);
    if (!element) return;
    element.hidden = false;
    element.closest(".group").hidden = false;
    element.open = true;
    all(".target-of").forEach((other) => other.classList.remove("target-of"));
    element.classList.add("target-of");
    element.scrollIntoView({ block: "start" });
    element.querySelector("summary").focus({ preventScroll: true });
  };

  const follow = (first) => {
    // A link to a part of the page leaves the filters as they are.
    if (location.hash && !location.hash.includes("=")) {
      if (!first) write();
      return;
    }
    const state = read();
    const fresh = !state.show || fields.some((field) => state[field.name]);
    if (first || fresh) {
      for (const field of fields) {
        field.value = state[field.name] ?? "";
        // A word that is no choice leaves a select without a value.
        if (field.selectedIndex === -1) field.value = "";
      }
    }
    apply(wanted());
    if (state.show) {
      reveal(state.show);
      write(state.show);
    } else if (!first) {
      form.scrollIntoView({ block: "start" });
    }
  };

  let pending = 0;
  const changed = () => {
    write();
    apply(wanted());
  };
  form.addEventListener("change", changed);
  form.addEventListener("input", (event) => {
    if (event.target.type !== "search") return;
    clearTimeout(pending);
    pending = setTimeout(changed, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(changed, 0));
  addEventListener("hashchange", () => follow(false));

  // A finding that is opened can be linked to.
  document.addEventListener("click", (event) => {
    const summary = event.target.closest(".finding > summary");
    if (summary) write(summary.parentElement.open ? "" : summary.parentElement.dataset.show);
    // A link to where the fragment leads already changes nothing, and is followed all the same.
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) follow(false);
  });

  const expand = document.getElementById("expand");
  const visible = () => findings.filter((finding) => !finding.element.hidden);
  const label = () => {
    expand.disabled = visible().length === 0;
    expand.textContent = visible().every((finding) => finding.element.open) && !expand.disabled ? "Close all" : "Open all";
  };
  expand.addEventListener("click", () => {
    const open = expand.textContent === "Open all";
    for (const finding of visible()) finding.element.open = open;
    write();
    label();
  });

  // Where the clipboard is closed to a page, the text is marked, and the reader copies it.
  const copy = async (button) => {
    const code = button.parentElement.querySelector("code");
    const name = button.firstChild;
    try {
      await navigator.clipboard.writeText(code.textContent);
      name.data = "Copied";
      said.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      name.data = "Marked";
      said.textContent = "The text is marked";
    }
    setTimeout(() => {
      name.data = "Copy";
      said.textContent = "";
    }, 2000);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button) copy(button);
  });
  for (const button of all("button.copy")) button.hidden = false;

  const theme = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % themes.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    theme.textContent = `Theme: ${next}`;
  });
  theme.hidden = false;

  // On paper nothing can be opened.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])").filter((element) => !element.hidden);
    for (const element of closed) element.open = true;
  });
  addEventListener("afterprint", () => {
    for (const element of closed) element.open = false;
    closed = [];
  });

  form.hidden = false;
  follow(true);
})();
