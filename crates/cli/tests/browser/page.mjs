// Drives the page in a real browser. Told by its first argument what to open; speaks with the test around it
// by lines: what it says on standard output is a wish, and a line on standard input grants it.

import fs from "node:fs";
import net from "node:net";
import readline from "node:readline";

const { playwright, axe, url, shots, file } = JSON.parse(process.argv[2]);
const { chromium } = await import(playwright);
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const wish = async (what) => { console.log(what); return JSON.parse((await lines.next()).value); };

function must(true_, what) {
  if (!true_) throw new Error(what);
}

// A network between browser and server that can be lost.
const target = new URL(url);
const sockets = new Set();
let network = null;
function restore(port) {
  return new Promise((resolve) => {
    network = net.createServer((near) => {
      const far = net.connect(Number(target.port), target.hostname);
      for (const socket of [near, far]) { sockets.add(socket); socket.on("error", () => {}); socket.on("close", () => { sockets.delete(socket); near.destroy(); far.destroy(); }); }
      near.pipe(far).pipe(near);
    }).listen(port, "127.0.0.1", () => resolve(network.address().port));
  });
}
function lose() {
  network.close();
  for (const socket of sockets) socket.destroy();
}
const port = await restore(0);
const link = `http://127.0.0.1:${port}/${target.search}`;

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
const complaints = [];
let lost = false;
function watch(page) {
  page.on("console", (message) => {
    // A browser tells of a lost connection by itself; that is what is tried here.
    const network = /ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE|ERR_NETWORK/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !(lost && network)) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => { complaints.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  return page;
}
const shot = (page, name) => page.screenshot({ path: `${shots}/${name}.png` });
const tab = (page, name) => page.locator("nav.tabs a", { hasText: name }).click();

// What keeps people out, as axe finds it in what is shown.
const barriers = [];
const judge = fs.readFileSync(axe, "utf8");
async function judged(page, what, rules) {
  if (!await page.evaluate(() => Boolean(window.axe))) await page.evaluate(judge);
  const found = await page.evaluate(async (runOnly) => (await window.axe.run(document, { resultTypes: ["violations"], ...(runOnly && { runOnly }) })).violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} (${failureSummary.split("\n")[1]})`).join("; ")}`), rules);
  barriers.push(...found.map((one) => `${what}: ${one}`));
}

// Goes on by the tab key until it is there; whoever uses keys sees where they are.
async function tabTo(page, what, most = 60) {
  for (let step = 0; step < most; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate((selector) => {
      const node = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(node);
      return { there: node.matches(selector), seen: node === document.body || (outlineStyle !== "none" && parseFloat(outlineWidth) > 0), node: node.outerHTML.slice(0, 120) };
    }, what);
    must(at.seen, `nobody sees the focus on ${at.node}`);
    if (at.there) return;
  }
  throw new Error(`the tab key does not come to ${what}`);
}

try {
  const desktop = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
  const page = watch(await desktop.newPage());

  // In by the link, which is clean afterwards, and remembered.
  await page.goto(link);
  await page.waitForSelector("a.loop");
  must(!page.url().includes("token"), "the token is still in the address");
  must((await page.evaluate(() => document.cookie)) === "", "a script can read the cookie");
  await shot(page, "loops");
  await judged(page, "the list of loops");
  await tabTo(page, "a.loop");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".question");
  await page.waitForSelector(".connection.on");
  await shot(page, "panel");
  const other = watch(await desktop.newPage());
  await other.goto(page.url());
  await other.waitForSelector(".question");
  // A page in the background is drawn once a second.
  await page.bringToFront();

  // What an agent printed is text, whatever it is.
  const base = page.url().split("#")[0];
  const loop = page.url().match(/#\/l\/([^/?]+)/)[1];
  const at = (rest) => `${base}#/l/${loop}/${rest}`;
  await page.goto(at("log?run=2"));
  await page.waitForFunction(() => document.querySelector(".log")?.textContent.includes("<script>alert(1)</script>"));
  const log = await page.locator(".log").textContent();
  must(log.includes("red") && !/[\u001b\u0007\u202e]/.test(log), `escapes are shown: ${JSON.stringify(log)}`);
  must(log.includes("⟨202e⟩"), "what turns text around is not named");
  must(await page.locator(".log script, .log img").count() === 0, "text became markup");
  await shot(page, "log");

  // What the agent at work said last is there while it thinks on.
  await page.goto(at("log"));
  await page.waitForFunction(() => document.querySelector(".log")?.textContent.includes("looking around"), null, { timeout: 5000 });

  // Every view has what it is for.
  const views = { Tasks: ".task", Graph: ".node", Timeline: ".span", Cost: ".card", Events: ".event", Checkpoints: ".checkpoint", Panel: ".stages" };
  for (const [name, what] of Object.entries(views)) {
    await tab(page, name);
    await page.waitForSelector(what);
    await shot(page, name.toLowerCase());
  }
  // In the dark only the colours are others.
  for (const [scheme, rules] of [["light", null], ["dark", ["color-contrast"]]]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [name, what] of Object.entries({ ...views, Log: ".entry" })) {
      await tab(page, name);
      await page.waitForSelector(what);
      if (scheme === "dark") await shot(page, `dark-${name.toLowerCase()}`);
      await judged(page, `${name} in the ${scheme}`, rules);
    }
    await page.goto(at("tasks?task=C"));
    await page.waitForSelector(".inspector .dl.added");
    await judged(page, `a task in the ${scheme}`, rules);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.waitForSelector("dialog");
    await judged(page, `a form in the ${scheme}`, rules);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.keyboard.press("Escape");
  }
  must(barriers.length === 0, `people are kept out\n${barriers.join("\n")}`);
  await page.emulateMedia({ colorScheme: "light" });
  must(await page.evaluate(() => document.getAnimations().length) === 0, "something moves for whoever wants no motion");
  const named = await page.evaluate(() => { const slider = document.querySelector("input[type=range]"); return [slider.getAttribute("aria-label"), slider.getAttribute("aria-valuetext")]; });
  must(named[0] && named[1], `the slider is called ${named}`);

  // A task by keys, found and changed; the loop takes the change up.
  await page.keyboard.press("2");
  await page.waitForSelector(".task");
  await tabTo(page, "input[type=search]");
  await page.keyboard.type("Do C");
  await page.waitForFunction(() => document.querySelectorAll(".task").length === 1);
  await tabTo(page, ".virtual");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".inspector .evidence");
  await page.waitForSelector(".inspector .dl.added");
  await shot(page, "task");
  await tabTo(page, ".inspector button:not(.icon)");
  await page.getByRole("button", { name: "Edit" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog");
  await shot(page, "edit");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("Do C, <b>well</b>");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog", { state: "detached" });
  await page.waitForFunction(() => document.querySelector(".inspector .lead")?.textContent === "Do C, <b>well</b>");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".inspector", { state: "detached" });

  // A line that passes a task by has a place beside it, and ten thousand tasks are placed at once.
  const beside = await page.evaluate(async () => {
    const { layout } = await import("/graph.js");
    const { spots, ways } = layout([{ after: [] }, { after: [0] }, { after: [0, 1] }]);
    const [way] = ways.get("0 2");
    const start = Date.now();
    layout(Array.from({ length: 10000 }, (_, at) => ({ after: at ? [at - 1, Math.floor(at / 2)] : [] })));
    return { x: spots[way].x === spots[1].x, clear: spots[way].y + 12 <= spots[1].y || spots[way].y >= spots[1].y + 46, took: Date.now() - start };
  });
  must(beside.x && beside.clear && beside.took < 2000, `lines run through tasks: ${JSON.stringify(beside)}`);

  // Back in time by keys, and to now again.
  await tab(page, "Panel");
  const slider = page.getByRole("slider");
  await slider.focus();
  await slider.press("Home");
  await page.waitForSelector(".transport.past");
  await page.waitForFunction(() => /of 0 done/.test(document.querySelector(".panel")?.textContent));
  must(await page.locator(".controls button").count() === 0, "the past can be changed");
  await shot(page, "past");
  await page.getByRole("button", { name: "Live" }).click();
  await page.waitForFunction(() => /1 of 3 done/.test(document.querySelector(".panel")?.textContent));

  // On a phone nothing sticks out.
  const phone = await browser.newContext({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, colorScheme: "dark", storageState: await desktop.storageState() });
  const small = watch(await phone.newPage());
  for (const view of ["panel", "tasks", "graph", "timeline", "log", "cost", "events", "checkpoints", "tasks?task=C"]) {
    await small.goto(at(view));
    await small.waitForSelector(".transport");
    await small.waitForTimeout(150);
    const wide = await small.evaluate(() => document.documentElement.scrollWidth);
    must(wide <= 390, `${view} is ${wide} pixels wide on a phone`);
    await shot(small, `phone-${view.split("?")[0]}${view.includes("?") ? "-task" : ""}`);
  }
  await phone.close();
  await page.bringToFront();

  // One answers, both see it.
  await other.waitForSelector(".question");
  await page.waitForSelector(".question");
  await page.keyboard.press("1");
  await tabTo(page, ".options li:nth-child(2) .option");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".question", { state: "detached" });
  await other.waitForSelector(".question", { state: "detached" });

  // The network is lost while the loop goes on; afterwards nothing is missing and nothing is there twice.
  lost = true;
  lose();
  await page.waitForSelector(".connection.off");
  await shot(page, "lost");
  const { events } = await wish("let it end");
  await restore(port);
  await page.waitForFunction(() => /3 of 3 done/.test(document.querySelector(".panel")?.textContent), null, { timeout: 20000 });
  await page.waitForSelector(".connection.on");
  lost = false;
  await tab(page, "Events");
  await page.waitForFunction((all) => document.querySelector(".tools")?.textContent.includes(`${all} events`), events);
  // How many there are is known before the last of them are there.
  await page.waitForFunction((all) => [...document.querySelectorAll(".event .no")].at(-1)?.textContent === String(all), events);
  const seen = await page.locator(".event .no").allTextContents();
  must(new Set(seen).size === seen.length && seen.at(-1) === String(events), `events are ${seen}`);
  await tab(other, "Panel");
  await other.waitForFunction(() => /3 of 3 done/.test(document.querySelector(".panel")?.textContent));

  // The same page as a file, from nowhere.
  await wish("write the file");
  const offline = await browser.newContext({ viewport: { width: 1280, height: 800 }, offline: true });
  const sent = watch(await offline.newPage());
  await sent.goto(`file://${file}`);
  await sent.waitForFunction(() => /3 of 3 done/.test(document.querySelector(".panel")?.textContent));
  for (const [name, what] of Object.entries({ ...views, Log: ".entry", Panel: ".stack" })) {
    await tab(sent, name);
    await sent.waitForSelector(what);
  }
  await tab(sent, "Panel");
  await sent.getByRole("slider").press("Home");
  await sent.waitForFunction(() => /0 of 3 done|of 0 done/.test(document.querySelector(".panel")?.textContent));
  await tab(sent, "Cost");
  await sent.waitForFunction(() => document.querySelector("tbody tr:last-child td")?.textContent === "0");
  await sent.getByRole("button", { name: "End", exact: true }).click();
  await sent.waitForFunction(() => document.querySelector("tbody tr:last-child td")?.textContent === "4");
  await sent.goto(`file://${file}#/l/${loop}/tasks?task=C`);
  await sent.locator(".evidence summary").click();
  await sent.getByRole("button", { name: "Show all of it" }).click();
  await sent.waitForFunction(() => document.querySelector(".evidence pre").textContent.includes("\n1500\n"));
  await sent.close();

  must(complaints.length === 0, complaints.join("\n"));

  // A token that is none opens nothing, and one that was taken back is said.
  const stranger = await (await browser.newContext()).newPage();
  const refused = await stranger.goto(link.replace(/token=.*/, "token=wrong"));
  must(refused.status() === 401, `a wrong token got ${refused.status()}`);
  await desktop.clearCookies();
  await page.goto(`${base}#/`);
  await page.waitForFunction(() => document.body.textContent.includes("expired"), null, { timeout: 10000 });
  console.log("all of it works");
} catch (error) {
  console.log(`FAILED ${error.stack}\n${complaints.join("\n")}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  lose();
  process.exit();
}
