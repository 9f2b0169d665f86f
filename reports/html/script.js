
"use strict";
(() => {
  // The page is complete without this script, which only filters, expands and copies. It never parses markup.
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
    (!filters.whose || finding.whose === filters.whose) &&
    (!filters.status || (filters.status === "open"
      ? !finding.element.matches(".flaky, .accepted") : finding.element.classList.contains(filters.status))) &&
    (!filters.q || text(finding).includes(filters.q.toLowerCase()));

  // Only findings have a status and an author, so these do not filter rows.
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
      const items = all(section.id === "results" ? ".area" : ".finding", section);
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

  // Findings outside of the viewport have an estimated height, so one jump lands in the wrong place: correct it until the
  // element stays where it belongs, or the user moves.
  let landing = 0;
  const land = (element) => {
    const own = ++landing;
    let tries = 20;
    let settled = 0;
    const step = () => {
      if (own !== landing) return;
      const before = scrollY;
      element.scrollIntoView({ block: "start", behavior: "instant" });
      settled = Math.abs(scrollY - before) < 1 ? settled + 1 : 0;
      tries -= 1;
      if (tries > 0 && settled < 3) requestAnimationFrame(() => requestAnimationFrame(step));
    };
    step();
  };
  for (const event of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    addEventListener(event, () => { landing += 1; }, { passive: true, capture: true });
  }

  const reveal = (name) => {
    const element = document.getElementById(`f-${name}`);
    if (!element) return;
    element.hidden = false;
    element.open = true;
    all(".target-of").forEach((other) => other.classList.remove("target-of"));
    element.classList.add("target-of");
    element.querySelector("summary").focus({ preventScroll: true });
    land(element);
  };

  const followFragment = (first) => {
    // A link to a section keeps the filters.
    if (location.hash && !location.hash.includes("=")) {
      const section = document.getElementById(location.hash.slice(1));
      if (first) apply(readFilters());
      else writeFragment();
      if (section) land(section);
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
      land(form);
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
  const copy = async (button, text, source) => {
    const label = button.firstChild;
    const before = label.data;
    if (button.disabled) return;
    button.disabled = true;
    try {
      await navigator.clipboard.writeText(text);
      label.data = "Copied";
      announcement.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      label.data = "Selected";
      announcement.textContent = "The text is selected";
    }
    setTimeout(() => {
      label.data = before;
      button.disabled = false;
      announcement.textContent = "";
    }, 2000);
  };

  // A finding as the text of an issue. What a server sent must not format the issue, link, or mention anyone.
  const inert = (text) => text.trim().replace(/\s+/g, " ").replace(/[\\`*_{}[\]()<>#|~!&@]/g, (c) => `&#${c.charCodeAt(0)};`);
  const fenced = (text) => {
    const runs = text.match(/`+/g) ?? [];
    const fence = "`".repeat(Math.max(3, ...runs.map((run) => run.length + 1)));
    return `${fence}text\n${text}\n${fence}`;
  };
  const one = (element, selector) => element.querySelector(selector)?.textContent ?? "";
  const label = (line) => [...line.childNodes].filter((node) => node.nodeName !== "BUTTON").map((node) => node.textContent).join("");
  const issue = (finding) => {
    const facts = all(":scope > .body > .facts > div", finding).map((fact) => [one(fact, "dt"), fact.querySelector("dd")]);
    const parts = [`## ${inert(one(finding, ".message-line"))}`];
    const about = [".badge", ".requirement", ".level", ".whose", ".occurrences"].map((part) => inert(one(finding, `summary ${part}`)));
    parts.push(about.join(", "));
    for (const name of ["expected", "actual"]) {
      const part = finding.querySelector(`.versus > .${name}`);
      const lines = all("p, pre", part).map((line) => line.textContent);
      parts.push(`**${one(part, "h4")}**`, fenced(lines.join("\n")));
    }
    for (const [name, value] of facts) {
      const link = value.querySelector("a");
      const command = value.matches(".command") && one(value, "code");
      parts.push(`**${name}**`, command ? fenced(command) : link ? `<${link.href}>` : inert(value.textContent));
    }
    const likewise = all(".folded h4", finding).map((heading) => `- ${inert(heading.textContent)}`);
    if (likewise.length) parts.push("**Probably of the same cause**", likewise.join("\n"));
    const messages = all(".evidence .message", finding)
      .map((message) => `${label(message.querySelector("p"))}\n${one(message, "pre")}`.trim());
    if (messages.length) parts.push("**Messages**", fenced(messages.join("\n\n")));
    return `${parts.join("\n\n")}\n`;
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy, button.issue");
    if (!button) return;
    if (button.matches(".issue")) {
      const finding = button.closest(".finding");
      copy(button, issue(finding), finding);
      return;
    }
    const source = button.closest(".message")?.querySelector("pre") ?? button.parentElement.querySelector("code");
    copy(button, source.textContent, source);
  });
  for (const button of all("button.copy, button.issue")) button.hidden = false;

  // Messages get their buttons once they are visible, as there can be tens of thousands.
  document.addEventListener("toggle", (event) => {
    if (!event.target.matches?.(".finding[open]")) return;
    for (const label of all(".message > p:first-child", event.target)) {
      if (label.querySelector("button")) continue;
      const button = document.createElement("button");
      const hint = document.createElement("span");
      button.type = "button";
      button.className = "copy";
      hint.className = "unseen";
      hint.textContent = " the message";
      button.append("Copy", hint);
      label.append(button);
    }
  }, true);

  // `/` searches; `j` and `k` go to the next and the previous finding.
  const neighbour = (step) => {
    const items = visible().map((finding) => finding.element);
    const current = items.indexOf(document.activeElement?.closest(".finding"));
    const next = items[current === -1 ? (step > 0 ? 0 : items.length - 1) : current + step];
    if (!next) return;
    next.querySelector("summary").focus({ preventScroll: true });
    land(next);
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      form.q.focus();
    } else if (event.key === "j" || event.key === "k") {
      neighbour(event.key === "j" ? 1 : -1);
    }
  });

  const theme = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % themes.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    theme.textContent = `Theme: ${next}`;
  });
  theme.hidden = false;

  // A print has every visible finding, with the messages of those that the reader opened.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = visible().map((finding) => finding.element).filter((element) => !element.open);
    for (const element of closed) {
      element.classList.add("brief");
      element.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const element of closed) {
      element.open = false;
      element.classList.remove("brief");
    }
    closed = [];
  });

  form.hidden = false;
  followFragment(true);
})();
