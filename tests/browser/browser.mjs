// A headless Chromium, driven over its debugging pipe: no package, no port.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The timeout of a browser command; starting a browser on a busy machine is slow. */
const COMMAND_TIMEOUT_MS = 60_000;

export class Browser {
  #process;
  #profile = mkdtempSync(join(tmpdir(), "mcp-conformance-browser-"));
  #pending = new Map();
  #listeners = new Set();
  #last = 0;
  #ended = null;

  constructor(program) {
    const options = [
      "--headless", "--remote-debugging-pipe", `--user-data-dir=${this.#profile}`, "--disable-gpu",
      "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--disable-default-apps", "--hide-scrollbars",
    ];
    // Chromium's sandbox does not start for root.
    if (process.getuid?.() === 0) options.push("--no-sandbox");
    this.#process = spawn(program, options, { stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"] });
    let stderr = "";
    this.#process.stderr.on("data", (text) => (stderr = (stderr + text).slice(-4000)));
    this.#process.on("error", (error) => this.#end(`${program} did not start: ${error.message}`));
    this.#process.on("exit", (code) => this.#end(`${program} ended with ${code}: ${stderr}`));
    this.#process.stdio[3].on("error", () => {});
    let rest = Buffer.alloc(0);
    this.#process.stdio[4].on("data", (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      for (let end = rest.indexOf(0); end !== -1; end = rest.indexOf(0)) {
        this.#receive(JSON.parse(rest.subarray(0, end).toString()));
        rest = rest.subarray(end + 1);
      }
    });
  }

  #end(why) {
    this.#ended ??= why;
    for (const { reject } of this.#pending.values()) reject(new Error(this.#ended));
    this.#pending.clear();
  }

  #receive(message) {
    const waiting = this.#pending.get(message.id);
    if (waiting) {
      this.#pending.delete(message.id);
      if (message.error) waiting.reject(new Error(`${waiting.method}: ${message.error.message}`));
      else waiting.resolve(message.result);
    }
    if (message.method) for (const listener of this.#listeners) listener(message);
  }

  send(method, params = {}, sessionId = undefined) {
    if (this.#ended) return Promise.reject(new Error(this.#ended));
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${method} got no response`)), COMMAND_TIMEOUT_MS);
      const settled = (settle) => (value) => {
        clearTimeout(late);
        settle(value);
      };
      this.#pending.set(id, { method, resolve: settled(resolve), reject: settled(reject) });
      this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  listen(listener) {
    this.#listeners.add(listener);
  }

  /** Opens a new page and records its console errors and requests from the start. */
  async page({ width = 1280, height = 900, dark = false, mobile = false } = {}) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    await Promise.all(["Page", "Runtime", "Log", "Network"].map((domain) => page.send(`${domain}.enable`)));
    await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: mobile ? 2 : 1, mobile });
    await page.send("Emulation.setFocusEmulationEnabled", { enabled: true });
    await page.send("Emulation.setEmulatedMedia", {
      features: [
        { name: "prefers-color-scheme", value: dark ? "dark" : "light" },
        { name: "prefers-reduced-motion", value: "reduce" },
      ],
    });
    return page;
  }

  async close() {
    if (this.#ended === null) {
      const exited = new Promise((resolve) => this.#process.once("exit", resolve));
      await this.send("Browser.close").catch(() => this.#process.kill("SIGKILL"));
      await exited;
    }
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  #browser;
  #session;
  /** Console errors and warnings, and uncaught exceptions. */
  consoleErrors = [];
  /** The URLs of all requests. */
  requests = [];
  /** The number of dialogs that were opened. */
  dialogs = 0;

  constructor(browser, session) {
    this.#browser = browser;
    this.#session = session;
    browser.listen(({ method, params, sessionId }) => {
      if (sessionId !== session) return;
      if (method === "Runtime.exceptionThrown") {
        const { text, exception } = params.exceptionDetails;
        this.consoleErrors.push(`${text} ${exception?.description ?? ""}`);
      } else if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) {
        this.consoleErrors.push(params.args.map((argument) => argument.value ?? argument.description).join(" "));
      } else if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) {
        this.consoleErrors.push(params.entry.text);
      } else if (method === "Network.requestWillBeSent") {
        this.requests.push(params.request.url);
      } else if (method === "Page.javascriptDialogOpening") {
        this.dialogs += 1;
        this.send("Page.handleJavaScriptDialog", { accept: true }).catch(() => {});
      }
    });
  }

  send(method, params = {}) {
    return this.#browser.send(method, params, this.#session);
  }

  /** Opens a URL and waits until it is loaded. */
  async load(url) {
    const loaded = new Promise((resolve) => {
      this.#browser.listen(({ method, sessionId }) => {
        if (method === "Page.loadEventFired" && sessionId === this.#session) resolve();
      });
    });
    const { errorText } = await this.send("Page.navigate", { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
    await loaded;
  }

  /** Opens a URL and waits until it is painted. */
  async open(url) {
    await this.load(url);
    await this.painted();
  }

  /**
   * Waits until the page has stopped changing: what it shows, where it is scrolled, and its address are the same for half
   * a second of painted frames, which a busy machine takes longer for.
   */
  settled() {
    return this.value(() => new Promise((done) => {
      const FRAMES = 30;
      const state = () => [
        location.hash, scrollY, document.body.scrollHeight, document.getElementById("announcement")?.textContent,
      ].join("\n");
      let [last, same] = [state(), 0];
      const look = () => {
        const now = state();
        [last, same] = [now, now === last ? same + 1 : 0];
        if (same < FRAMES) requestAnimationFrame(look);
        else done(true);
      };
      requestAnimationFrame(look);
    }));
  }

  /** What is on the clipboard, once it is something else than before. */
  copied(before) {
    return this.value(async (before) => {
      const FRAMES = 600;
      for (let frame = 0; frame < FRAMES; frame += 1) {
        const text = await navigator.clipboard.readText();
        if (text !== before) return text;
        await new Promise((done) => requestAnimationFrame(done));
      }
      return before;
    }, before);
  }

  painted() {
    return this.value(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))));
  }

  /** Evaluates a function in the page with user activation and returns its result. */
  async value(work, ...values) {
    const expression = typeof work === "string" ? work : `(${work})(...${JSON.stringify(values)})`;
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression, awaitPromise: true, returnByValue: true, userGesture: true,
    });
    if (exceptionDetails) {
      throw new Error(`${exceptionDetails.text} ${exceptionDetails.exception?.description ?? ""}`);
    }
    return result.value;
  }

  /** A screenshot of the whole page or of the viewport. */
  async picture(whole = true) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole });
    return Buffer.from(data, "base64");
  }
}
