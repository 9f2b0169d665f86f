
"use strict";
(() => {
  // The page is complete without this script, which only filters, expands and copies. It never creates markup.
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const form = document.getElementById("filters");
  const counted = document.getElementById("shown");
  const announcement = document.getElementById("announcement");
  const fields = all("select, input", form);
  const has = (list, item) => list.split(" ").includes(item);

  const tools = fields.find((field) => field.name === "tool");
  const toolNumbers = new Map([...tools.options].slice(1).map((option, index) => [option.value, String(index)]));
  const columns = new Map([...fields.find((field) => field.name === "revision").options].slice(1)
    .map((option, index) => [option.value, index]));

  const findings = all(".finding").map((element) => ({ element, ...element.dataset }));
  const groups = all(".group").map((element) => ({ element, findings: all(".finding", element) }));
  const areas = all(".area").map((element) => ({ element, area: element.dataset.area, cases: Number(element.dataset.cases), rows: null }));
  const text = (item) => (item.text ??= item.element.textContent.toLowerCase());

  // There can be thousands of rows, so an area reads its rows when a filter first needs them.
  const rowsOf = (area) => (area.rows ??= all("tbody tr", area.element).map((element) => ({
    element,
    verdicts: [...element.cells].slice(1).map((cell) => cell.className),
    levels: element.dataset.levels ?? "",
    tools: element.dataset.tools ?? "",
  })));

  const matchesFinding = (filters, finding) =>
    (!filters.level || finding.level === filters.level) &&
    (!filters.verdict || finding.verdict === filters.verdict) &&
    (!filters.area || has(finding.areas, filters.area)) &&
    (!filters.revision || has(finding.revisions, filters.revision)) &&
    (!filters.tool || has(finding.tools, toolNumbers.get(filters.tool))) &&
    (!filters.status || (filters.status === "open"
      ? !finding.element.matches(".flaky, .accepted") : finding.element.classList.contains(filters.status))) &&
    (!filters.q || text(finding).includes(filters.q.toLowerCase()) ||
      finding.element.parentElement.firstElementChild.textContent.toLowerCase().includes(filters.q.toLowerCase()));

  // Only findings have a status, so it does not filter rows.
  const matchesRow = (filters, row) => {
    const verdicts = filters.revision ? [row.verdicts[columns.get(filters.revision)]] : row.verdicts;
    return verdicts.some((verdict) => verdict && (!filters.verdict || verdict === filters.verdict)) &&
      (!filters.level || has(row.levels, filters.level)) &&
      (!filters.tool || has(row.tools, toolNumbers.get(filters.tool))) &&
      (!filters.q || text(row).includes(filters.q.toLowerCase()));
  };

  const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;
  let filtered = false;
  const apply = (filters) => {
    const active = fields.some((field) => filters[field.name]);
    let found = 0;
    for (const finding of findings) {
      const matches = matchesFinding(filters, finding);
      finding.element.hidden = !matches;
      found += matches ? 1 : 0;
    }
    for (const group of groups) {
      group.element.hidden = group.findings.every((element) => element.hidden);
    }
    let cases = 0;
    let total = 0;
    for (const area of areas) {
      total += area.cases;
      // No filter has hidden a row yet, and none is set.
      if (!active && !area.rows) {
        cases += area.cases;
        continue;
      }
      const rows = rowsOf(area);
      const inArea = !filters.area || area.area === filters.area;
      let visibleRows = 0;
      for (const row of rows) {
        const shown = inArea && matchesRow(filters, row);
        if (row.element.hidden === shown) row.element.hidden = !shown;
        visibleRows += shown ? 1 : 0;
      }
      area.element.hidden = visibleRows === 0;
      // A short list opens by itself; a long one stays closed.
      if (active) area.element.open = visibleRows > 0 && visibleRows <= 60;
      else if (filtered) area.element.open = false;
      cases += visibleRows;
    }
    filtered = active;
    for (const element of all(".fuzz")) {
      element.hidden = Boolean(filters.revision) && element.dataset.revision !== filters.revision;
    }
    for (const note of all(".nothing")) {
      const section = note.parentElement;
      const items = all(section.id === "results" ? ".area" : ".group", section);
      note.hidden = items.length === 0 || items.some((element) => !element.hidden);
    }
    counted.value = active
      ? `${found} of ${plural(findings.length, "finding", "findings")}, ${cases} of ${plural(total, "case", "cases")}`
      : `${plural(findings.length, "finding", "findings")}, ${plural(total, "case", "cases")}`;
    for (const field of fields) field.classList.toggle("set", Boolean(filters[field.name]));
    updateExpandButton();
  };

  // The URL fragment holds the filters and the open finding, so that a link restores the view.
  const readFragment = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const readFilters = () => Object.fromEntries(fields.map((field) => [field.name, field.value]));
  const writeFragment = (show) => {
    const params = new URLSearchParams(Object.entries(readFilters()).filter(([, value]) => value));
    if (show) params.set("show", show);
    const fragment = params.toString();
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

  const followFragment = (first) => {
    // A link to a section keeps the filters.
    if (location.hash && !location.hash.includes("=")) {
      if (!first) writeFragment();
      return;
    }
    const state = readFragment();
    const resets = !state.show || fields.some((field) => state[field.name]);
    if (first || resets) {
      for (const field of fields) {
        field.value = state[field.name] ?? "";
        // An unknown value leaves a select without a selection.
        if (field.selectedIndex === -1) field.value = "";
      }
    }
    apply(readFilters());
    if (state.show) {
      reveal(state.show);
      writeFragment(state.show);
    } else if (!first) {
      form.scrollIntoView({ block: "start" });
    }
  };

  let pending = 0;
  const changed = () => {
    writeFragment();
    apply(readFilters());
  };
  form.addEventListener("change", changed);
  form.addEventListener("input", (event) => {
    if (event.target.type !== "search") return;
    clearTimeout(pending);
    pending = setTimeout(changed, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(changed, 0));
  addEventListener("hashchange", () => followFragment(false));

  // Opening a finding puts it into the URL fragment.
  document.addEventListener("click", (event) => {
    const summary = event.target.closest(".finding > summary");
    if (summary) writeFragment(summary.parentElement.open ? "" : summary.parentElement.dataset.show);
    // A link to the current fragment fires no hashchange event.
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) followFragment(false);
  });

  const expand = document.getElementById("expand");
  const visible = () => findings.filter((finding) => !finding.element.hidden);
  const updateExpandButton = () => {
    expand.disabled = visible().length === 0;
    expand.textContent = visible().every((finding) => finding.element.open) && !expand.disabled ? "Close all" : "Open all";
  };
  expand.addEventListener("click", () => {
    const open = expand.textContent === "Open all";
    for (const finding of visible()) finding.element.open = open;
    writeFragment();
    updateExpandButton();
  });

  // Without clipboard access, select the text so that the user can copy it.
  const copy = async (button) => {
    const code = button.parentElement.querySelector("code");
    const label = button.firstChild;
    try {
      await navigator.clipboard.writeText(code.textContent);
      label.data = "Copied";
      announcement.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      label.data = "Selected";
      announcement.textContent = "The text is selected";
    }
    setTimeout(() => {
      label.data = "Copy";
      announcement.textContent = "";
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

  // Expand everything for printing.
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
  followFragment(true);
})();
