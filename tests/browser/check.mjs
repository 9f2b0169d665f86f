// Tests an HTML report in headless Chromium:
//
//     node check.mjs <trial> <page.html>
//     node check.mjs pictures <page.html> <folder>
//
// A trial exits with 0 on success and with 1 and the reasons on failure. `pictures` takes screenshots.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { Browser } from "./browser.mjs";

const PROGRAM = process.env.MCP_CONFORMANCE_CHROMIUM ?? "chromium";
/** A page that takes longer to open or to search is of no use. Measured: 1 s each; a busy machine takes several times that. */
const OPEN_LIMIT_MS = 20_000;

const [trial, file, folder] = process.argv.slice(2);
const url = pathToFileURL(file).href;

const count = (page, selector) => page.value((selector) => document.querySelectorAll(selector).length, selector);
const visibleCount = (page, selector) =>
  page.value((selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility()).length, selector);
const fragment = (page) => page.value(() => decodeURIComponent(location.hash.replaceAll("+", " ")));
const choose = async (page, name, value) => {
  await page.value((name, value) => {
    const field = document.querySelector(`#filters [name=${name}]`);
    field.value = value;
    field.dispatchEvent(new Event(field.type === "search" ? "input" : "change", { bubbles: true }));
  }, name, value);
  await page.settled();
};

/** Whether an element is in the viewport, below the sticky navigation. */
const landed = async (page, selector) => {
  await page.settled();
  return page.value((selector) => {
    const below = document.getElementById("parts").getBoundingClientRect().bottom;
    const { top } = document.querySelector(selector).getBoundingClientRect();
    return { top, below, lands: top >= below - 1 && top <= below + 40 };
  }, selector);
};
const press = async (page, key, code) => {
  const text = key.length === 1 ? key : undefined;
  for (const type of ["keyDown", "keyUp"]) await page.send("Input.dispatchKeyEvent", { type, key, code, text: type === "keyDown" ? text : undefined });
  await page.painted();
};
/** Checks that nothing is wider than a phone, with everything closed and with everything open. */
const fitsPhone = async (phone) => {
  for (const open of [false, true]) {
    await phone.value((open) => open && document.querySelectorAll("details").forEach((one) => (one.open = true)), open);
    await phone.painted();
    const { wide, view } = await phone.value(() => ({ wide: document.documentElement.scrollWidth, view: innerWidth }));
    assert.ok(view === 390 && wide <= view, `the page scrolls horizontally on a phone: ${wide} > ${view}`);
    const outside = await phone.value(() => [...document.querySelectorAll("header *, main *")]
      .filter((one) => one.checkVisibility() && !one.closest(".scroll, .unseen, svg, .skip-link"))
      .filter((one) => one.getBoundingClientRect().right > innerWidth)
      .map((one) => `${one.tagName} ${one.className}: ${one.textContent.slice(0, 60)}`));
    assert.deepEqual(outside, [], "no element overflows the viewport of a phone");
  }
};

/** Checks a page in both colour schemes and two widths, with everything closed and with everything open. */
const axeFindsNothing = async (browser) => {
  const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  const pages = [];
  for (const [dark, width] of [[false, 1280], [true, 1280], [false, 390], [true, 390]]) {
    // axe only checks what is drawn, so the viewport covers the whole page.
    const page = await browser.page({ dark, width, height: 24_000, mobile: width < 500 });
    await page.open(url);
    for (const open of [false, true]) {
      if (open) await page.value(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      await page.painted();
      await page.value(axe);
      const found = await page.value(async () => {
        const { violations, passes } = await axe.run(document, { resultTypes: ["violations"] });
        return {
          ran: passes.length,
          bad: violations.map(({ id, impact, help, nodes }) => ({
            id, impact, help, nodes: nodes.slice(0, 4).map((node) => `${node.html} ${node.failureSummary}`),
          })),
        };
      });
      assert.ok(found.ran > 20, `only ${found.ran} rules applied`);
      assert.deepEqual(found.bad, [], `dark: ${dark}, width: ${width}, open: ${open}`);
    }
    pages.push(page);
  }
  return pages;
};

const trials = {
  async opens(browser) {
    const page = await browser.page();
    await page.open(url);
    assert.equal(await page.value(() => document.querySelector(".verdict-keyword").textContent), "FAIL");
    assert.ok(await visibleCount(page, ".finding") > 2, "findings are visible");
    assert.ok(await visibleCount(page, ".matrix td") > 2, "the matrix is visible");
    assert.equal(await visibleCount(page, "#filters"), 1, "the filters are visible");
    const phone = await browser.page({ width: 390, height: 844, mobile: true });
    await phone.open(url);
    await fitsPhone(phone);
    return [page, phone];
  },

  // Without scripts, the page is still complete.
  async "opens-without-script"(browser) {
    const page = await browser.page();
    await page.send("Emulation.setScriptExecutionDisabled", { value: true });
    await page.load(url);
    const { root } = await page.send("DOM.getDocument", { depth: 0 });
    const number = async (selector) =>
      (await page.send("DOM.querySelectorAll", { nodeId: root.nodeId, selector })).nodeIds.length;
    assert.ok(await number(".finding .wire pre") > 3, "messages are present");
    assert.ok(await number(".results tbody tr") > 3, "results are present");
    assert.equal(await number("#filters:not([hidden])"), 0, "the filters are hidden");
    assert.equal(await number("button:not([hidden]):not(#filters button)"), 0, "buttons are hidden");
    return [page];
  },

  async filters(browser) {
    const page = await browser.page();
    await page.open(url);
    const all = await visibleCount(page, ".finding");
    await choose(page, "verdict", "warn");
    assert.equal(await fragment(page), "#verdict=warn");
    assert.equal(await visibleCount(page, ".finding"), await count(page, ".finding.warn"));
    assert.ok(await visibleCount(page, ".finding") < all);
    assert.equal(await visibleCount(page, ".results tbody tr"), await count(page, ".results tr:has(td.warn)"));
    await choose(page, "verdict", "skip");
    assert.equal(await visibleCount(page, ".finding"), 0);
    assert.equal(await visibleCount(page, "#findings > .nothing"), 1, "a note says that nothing matches");
    await choose(page, "verdict", "");
    await choose(page, "area", "tools");
    await choose(page, "revision", "2025-06-18");
    assert.equal(await fragment(page), "#area=tools&revision=2025-06-18");
    assert.deepEqual(
      await page.value(() => [...document.querySelectorAll(".results tbody tr")]
        .filter((row) => row.checkVisibility()).map((row) => row.querySelector("code").textContent)),
      ["tools/call/unknown-tool", "tools/list/cursor-altered", "tools/tasks/required"],
    );
    await page.value(() => document.getElementById("clear").click());
    await page.settled();
    assert.equal(await fragment(page), "");
    assert.equal(await visibleCount(page, ".finding"), all);
    await choose(page, "tool", "search");
    assert.equal(await visibleCount(page, ".finding"), 1);
    await choose(page, "tool", "");
    await choose(page, "level", "MUST");
    assert.equal(await visibleCount(page, ".finding"), await count(page, ".finding[data-level=MUST]"));
    await choose(page, "level", "");
    await choose(page, "status", "flaky");
    assert.equal(await visibleCount(page, ".finding"), await count(page, ".finding.flaky"));
    await choose(page, "status", "accepted");
    assert.equal(await visibleCount(page, "#findings .finding"), 0);
    assert.equal(await visibleCount(page, "#accepted .finding"), 1);
    await choose(page, "status", "");

    // The search includes messages in collapsed findings.
    await choose(page, "q", "STACK trace");
    assert.equal(await visibleCount(page, ".finding"), 1);
    assert.equal(await fragment(page), "#q=STACK trace");
    await choose(page, "q", "server.js:10:3");
    assert.equal(await visibleCount(page, ".finding"), 1);

    // A link restores the filters, and a cell of the matrix sets them.
    const other = await browser.page();
    await other.open(`${url}#verdict=fail&area=tools&q=successful`);
    assert.equal(await visibleCount(other, ".finding"), 1);
    assert.equal(await other.value(() => document.querySelector("[name=area]").value), "tools");
    await other.value(() => document.querySelector('.matrix td a[href*="fuzz"]').click());
    await other.painted();
    assert.equal(await fragment(other), "#area=fuzz&revision=2025-11-25");
    assert.equal(await visibleCount(other, ".finding"), 1);
    await other.value(() => document.querySelector(".tiles .warn a").click());
    await other.painted();
    assert.equal(await visibleCount(other, ".finding"), await count(other, ".finding.warn"));
    return [page, other];
  },

  async expands(browser) {
    const page = await browser.page();
    await page.open(url);
    assert.equal(await visibleCount(page, ".finding pre"), 0);
    // By keyboard: to the first finding, then Enter.
    await page.value(() => document.querySelector(".finding > summary").focus());
    for (const type of ["keyDown", "keyUp"]) {
      await page.send("Input.dispatchKeyEvent", { type, key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" });
    }
    await page.painted();
    assert.ok(await visibleCount(page, ".finding .wire pre") > 0, "Enter opens a finding");
    const link = await fragment(page);
    assert.match(link, /^#show=./);
    const other = await browser.page();
    await other.open(`${url}${link}`);
    assert.equal(await count(other, ".finding[open]"), 1, "its link opens it");
    await other.value(() => document.getElementById("expand").click());
    assert.equal(await count(other, ".finding:not([open])"), 0);
    await other.value(() => document.getElementById("expand").click());
    assert.equal(await count(other, ".finding[open]"), 0);
    await other.value(() => document.querySelector(".results a.reason").click());
    await other.painted();
    assert.equal(await count(other, ".finding[open]"), 1, "a result links to its finding");
    await other.value(() => document.querySelector(".tool > summary").click());
    assert.ok(await visibleCount(other, ".histogram rect") > 3, "the plots are visible");
    // Printing expands the findings.
    await other.value(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await count(other, ".finding:not([open])"), 0);
    await other.value(() => dispatchEvent(new Event("afterprint")));
    assert.ok(await count(other, "details:not([open])") > 3);
    return [page, other];
  },

  async copies(browser) {
    await browser.send("Browser.grantPermissions", { permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    const page = await browser.page();
    await page.open(`${url}#q=successful`);
    await page.value(() => document.getElementById("expand").click());
    const wanted = await page.value(() => {
      const button = [...document.querySelectorAll("button.copy")].find((one) => one.checkVisibility());
      button.click();
      return button.parentElement.querySelector("code").textContent;
    });
    assert.match(wanted, /^mcp-conformance --revision /);
    assert.equal(await page.copied(""), wanted);
    await page.settled();
    assert.equal(await page.value(() => document.getElementById("announcement").textContent), "Copied");
    return [page];
  },

  async accessible(browser) {
    return axeFindsNothing(browser);
  },

  // Every text of the page attempts an injection.
  async hostile(browser) {
    const page = await browser.page();
    await page.open(url);
    await page.value(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
    await page.painted();
    assert.equal(await page.value(() => typeof globalThis.owned), "undefined", "an injected script ran");
    assert.equal(await count(page, "script"), 1);
    assert.equal(await count(page, "style"), 1);
    assert.equal(await count(page, "img, iframe, object, embed, link, base, video, audio, source, image, foreignObject"), 0);
    const unexpected = await page.value(() => [...document.querySelectorAll("*")].flatMap((element) => [...element.attributes]
      .filter(({ name }) => name.startsWith("on") || name === "style" || name === "srcdoc").map(({ name }) => name)));
    assert.deepEqual(unexpected, []);
    const links = await page.value(() => [...document.querySelectorAll("a")].map((one) => one.getAttribute("href")));
    assert.deepEqual(links.filter((link) => !/^(https:\/\/|#)/.test(link)), []);
    // The filters handle hostile values, too.
    await page.value(() => {
      for (const field of document.querySelectorAll("#filters select")) field.selectedIndex = field.length - 1;
      document.getElementById("filters").dispatchEvent(new Event("change"));
    });
    await page.value(() => document.querySelectorAll("button").forEach((one) => one.click()));
    await page.painted();
    assert.equal(await page.value(() => typeof globalThis.owned), "undefined", "an injected script ran");
    assert.equal(page.dialogs, 0);
    // The policy would block an injected script.
    const stopped = await browser.page();
    await stopped.open(url);
    await stopped.value(() => {
      const script = document.createElement("script");
      try {
        script.text = "globalThis.owned = 1";
        document.body.append(script);
      } catch {
        // Trusted types reject the string.
      }
      const image = document.createElement("img");
      image.src = "https://example.org/x.png";
      document.body.append(image);
    });
    await stopped.painted();
    assert.equal(await stopped.value(() => typeof globalThis.owned), "undefined", "the policy allows a script");
    assert.ok(stopped.consoleErrors.some((text) => text.includes("Content Security Policy")), "the policy is not enforced");
    return [page];
  },

  // A link lands on its finding, also where a thousand others with estimated heights come before it.
  async lands(browser) {
    const first = await browser.page();
    await first.open(url);
    const names = await first.value(() => [...document.querySelectorAll(".finding")].map((one) => one.dataset.show));
    assert.equal(names.length, 1000);
    for (const [width, at] of [[1280, 870], [390, 412]]) {
      const page = await browser.page({ width, mobile: width < 500 });
      await page.open(`${url}#show=${names[at]}`);
      const selector = `#f-${names[at]}`;
      assert.equal(await count(page, `${selector}[open]`), 1, "the link opens its finding");
      const place = await landed(page, selector);
      assert.ok(place.lands, `${selector} is at ${place.top}, the navigation ends at ${place.below}`);
      await page.value(() => document.querySelector('#parts a[href="#results"]').click());
      const results = await landed(page, "#results");
      assert.ok(results.lands, `the results are at ${results.top}, the navigation ends at ${results.below}`);
    }
    return [first];
  },

  async long(browser) {
    const phone = await browser.page({ width: 390, height: 844, mobile: true });
    await phone.open(url);
    await fitsPhone(phone);
    return [phone];
  },

  async navigates(browser) {
    await browser.send("Browser.grantPermissions", { permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    const page = await browser.page();
    await page.open(url);
    // What fails comes first.
    assert.ok(await page.value(() => Boolean(document.getElementById("findings")
      .compareDocumentPosition(document.getElementById("overview")) & Node.DOCUMENT_POSITION_FOLLOWING)), "findings are first");
    const focused = () => page.value(() => document.activeElement.closest(".finding")?.id ?? document.activeElement.name);
    const ids = await page.value(() => [...document.querySelectorAll(".finding")].map((one) => one.id));
    await press(page, "j", "KeyJ");
    assert.equal(await focused(), ids[0]);
    await press(page, "j", "KeyJ");
    assert.equal(await focused(), ids[1]);
    await press(page, "k", "KeyK");
    assert.equal(await focused(), ids[0]);
    await press(page, "/", "Slash");
    assert.equal(await focused(), "q");
    await press(page, "j", "KeyJ");
    assert.equal(await page.value(() => document.activeElement.value), "j", "keys are text in a field");
    await press(page, "Escape", "Escape");
    await page.value(() => document.getElementById("clear").click());
    await page.value(() => scrollTo(0, document.body.scrollHeight));
    await page.painted();
    assert.equal(await page.value(() => document.getElementById("parts").getBoundingClientRect().top), 0, "the navigation stays");

    await page.value(() => { document.querySelector(".finding:has(.evidence)").open = true; });
    await page.painted();
    const message = await page.value(() => {
      const button = document.querySelector(".finding[open] .evidence .message button.copy");
      button.click();
      return button.closest(".message").querySelector("pre").textContent;
    });
    assert.equal(await page.copied(""), message);
    const sentence = await page.value(() => {
      document.querySelector(".finding[open] button.issue").click();
      return document.querySelector(".finding[open] .message-line").textContent.trim().split(/[^a-zA-Z ]/)[0];
    });
    const issue = await page.copied(message);
    assert.ok(issue.startsWith("## ") && issue.includes(sentence), issue);
    for (const part of ["**Expected**", "**Actual**", "**Reproduce**", "```text\nmcp-conformance ", "**Messages**", message]) {
      assert.ok(issue.includes(part), `${part} is not in ${issue}`);
    }
    return [page];
  },

  // The author's findings come first, then those of the SDK, interpretations, and what is accepted; one card a cause.
  async attributes(browser) {
    const page = await browser.page();
    await page.open(url);
    const sections = await page.value(() => [...document.querySelectorAll(".part")].map((part) => [part.id,
      [...part.querySelectorAll(".finding")].map((one) => one.dataset.whose)]));
    assert.deepEqual(sections.map(([id]) => id), ["findings", "sdk", "interpretations", "accepted"]);
    assert.deepEqual(new Set(sections[0][1]), new Set(["author"]));
    assert.deepEqual(sections.slice(1).map(([, whose]) => whose), [["SDK"], ["interpretation"], ["author"]]);
    const verdicts = await page.value(() => [...document.querySelectorAll("#findings .finding")].map((one) => one.dataset.verdict));
    assert.deepEqual(verdicts, [...verdicts].sort(), "what fails comes before what warns");
    assert.match(await page.value(() => document.querySelector("#sdk .lead").textContent), /To get rid of these findings, /);
    const heading = await page.value(() => [...document.querySelectorAll(".finding > summary > h3")].map((one) => one.textContent.trim()));
    assert.equal(heading.length, await count(page, ".finding"), "each card has a heading");
    assert.equal(heading.filter((text) => text.includes("The server exits on a call.")).length, 1, "one card a cause");
    assert.ok(heading.includes("2 tools: The server exits on a call."), heading.join("\n"));
    for (const [whose, badge] of [["author", "your code"], ["SDK", "TypeScript SDK 1"], ["interpretation", "interpretation"]]) {
      await choose(page, "whose", whose);
      assert.equal(await visibleCount(page, ".finding"), await count(page, `.finding[data-whose="${whose}"]`));
      const badges = await page.value(() => [...document.querySelectorAll(".finding .whose")]
        .filter((one) => one.checkVisibility()).map((one) => one.textContent));
      assert.deepEqual(new Set(badges), new Set([badge]));
      assert.equal(await fragment(page), `#whose=${whose}`);
    }
    await choose(page, "whose", "");
    // A link to a finding of any section opens it there.
    for (const section of ["sdk", "interpretations", "accepted"]) {
      const name = await page.value((section) => document.querySelector(`#${section} .finding`).dataset.show, section);
      const other = await browser.page();
      await other.open(`${url}#show=${name}`);
      assert.equal(await count(other, `#f-${name}[open]`), 1);
      const place = await landed(other, `#f-${name}`);
      assert.ok(place.lands, `${name} is at ${place.top}, the navigation ends at ${place.below}`);
    }
    // The minimal calls of both tools are with their cause.
    const calls = await page.value(() => {
      const card = [...document.querySelectorAll(".finding")].find((one) => one.textContent.includes("2 tools: "));
      card.open = true;
      return [...card.querySelectorAll("code.paste")].length;
    });
    assert.equal(calls, 2);
    const phone = await browser.page({ width: 390, height: 844, mobile: true });
    await phone.open(url);
    await fitsPhone(phone);
    return [page, phone];
  },

  async compares(browser) {
    const page = await browser.page();
    await page.open(url);
    const changes = await page.value(() => [...document.querySelectorAll("#changes h3")].map((title) =>
      [title.textContent.trim(), [...title.nextElementSibling.querySelectorAll("li")].map((one) => one.textContent)]));
    assert.deepEqual(changes.map(([title]) => title), ["New 1", "Fixed 1", "Changed 1"]);
    assert.match(changes[0][1][0], /The server exits on a call/);
    assert.match(changes[1][1][0], /The server wrote a blank line/);
    assert.match(changes[2][1][0], /before: warn: An error message has 99 lines/);
    assert.match(await page.value(() => document.getElementById("changes-title").textContent), /2026-07-01 08:00 UTC/);
    await choose(page, "status", "new");
    assert.equal(await visibleCount(page, ".finding"), 1);
    assert.equal(await visibleCount(page, ".finding .mark.new"), 1);
    await choose(page, "status", "");
    await page.value(() => document.querySelector("#changes a").click());
    await page.painted();
    const name = await page.value(() => document.querySelector(".finding[open]").id);
    const place = await landed(page, `#${name}`);
    assert.ok(place.lands && await count(page, `#${name} .mark.new`) === 1, `${name} is at ${place.top}`);
    await axeFindsNothing(browser);
    return [page];
  },

  async fleet(browser) {
    const page = await browser.page();
    await page.open(url);
    assert.deepEqual(await page.value(() => [...document.querySelectorAll("tbody th a")].map((one) => one.getAttribute("href")).slice(0, 2)),
      ["./reports/a.html", "./javascript%3AglobalThis.owned%3D1"]);
    assert.deepEqual(await page.value(() => [...document.querySelectorAll("table tbody tr:first-child td .badge")].map((one) => one.textContent)),
      ["failed", "1 fail", "2 fail"]);
    assert.equal(await count(page, "script, img, iframe, object, link"), 0);
    assert.equal(await page.value(() => typeof globalThis.owned), "undefined");
    const phone = await browser.page({ width: 390, height: 844, mobile: true });
    await phone.open(url);
    const { wide, view } = await phone.value(() => ({ wide: document.documentElement.scrollWidth, view: innerWidth }));
    assert.ok(wide <= view, `the page scrolls horizontally on a phone: ${wide} > ${view}`);
    await axeFindsNothing(browser);
    return [page, phone];
  },

  // A print has the findings, and neither the results of every case nor each message.
  async prints(browser) {
    const page = await browser.page();
    await page.open(url);
    await page.value(() => dispatchEvent(new Event("beforeprint")));
    await page.send("Emulation.setEmulatedMedia", { media: "print" });
    await page.painted();
    assert.equal(await visibleCount(page, ".finding .versus"), await count(page, ".finding"));
    for (const absent of [".finding .wire", ".results", "#parts", "#filters", "button"]) {
      assert.ok(await count(page, absent) > 0 && await visibleCount(page, absent) === 0, `${absent} is printed`);
    }
    const { data } = await page.send("Page.printToPDF", {});
    const pages = Buffer.from(data, "base64").toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0;
    const findings = await count(page, ".finding");
    assert.ok(pages > 0 && pages <= findings + 2, `${findings} findings take ${pages} pages`);
    return [page];
  },

  // How long it takes is printed, and limited only by what nobody waits for.
  async big(browser) {
    const last = await browser.page();
    const began = performance.now();
    await last.open(url);
    const opened = Math.round(performance.now() - began);
    assert.equal(await count(last, ".results tbody tr"), 5000);
    assert.equal(await count(last, ".message"), 20_000);
    const asked = performance.now();
    await choose(last, "q", "needle");
    const searched = Math.round(performance.now() - asked);
    assert.equal(await visibleCount(last, ".finding"), 1);
    console.log(`opened in ${opened} ms, searched in ${searched} ms`);
    assert.ok(Math.max(opened, searched) < OPEN_LIMIT_MS, `opened in ${opened} ms, searched in ${searched} ms`);
    return [last];
  },
};

async function pictures(browser) {
  const views = {
    summary: "", finding: "#show=jsonrpc-request-answered", other: "#show=tools-call-unknown-tool-error", results: "#results", fuzzing: "#fuzzing",
  };
  for (const [form, of] of Object.entries({
    light: { width: 1280, height: 1000 }, dark: { width: 1280, height: 1000, dark: true },
    phone: { width: 390, height: 844, mobile: true }, "phone-dark": { width: 390, height: 844, mobile: true, dark: true },
  })) {
    for (const [view, fragment] of Object.entries(views)) {
      const page = await browser.page(of);
      await page.open(`${url}${fragment}`);
      if (fragment === "#fuzzing" || fragment === "#results") {
        await page.value((within) => document.querySelectorAll(`${within} details`).forEach((one) => (one.open = true)), fragment);
        await page.value((within) => document.querySelector(within).scrollIntoView(), fragment);
      }
      await page.painted();
      writeFileSync(join(folder, `${view}-${form}.png`), await page.picture(false));
    }
    // With everything open a phone's page is longer than a picture may be.
    if (of.mobile) continue;
    const page = await browser.page(of);
    await page.open(url);
    await page.value(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
    await page.painted();
    writeFileSync(join(folder, `all-${form}.png`), await page.picture(true));
  }
  return [];
}

const browser = new Browser(PROGRAM);
try {
  const work = trial === "pictures" ? pictures : trials[trial];
  assert.ok(work, `there is no trial ${trial}`);
  for (const page of await work(browser)) {
    assert.deepEqual(page.consoleErrors, [], "the console has no errors");
    const external = page.requests.filter((address) => address.split("#")[0] !== url);
    assert.deepEqual(external, [], "the page loads no external resources");
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await browser.close();
}
