// Measures the page in a real browser: how soon it is there, and how soon events are seen.

const [playwright, told] = process.argv.slice(2);
const { what, url, loop, events } = JSON.parse(told);
const { chromium } = await import(playwright);
const base = new URL(url).origin;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
const middle = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];

async function paint() {
  const [paints, contents] = [[], []];
  for (let round = 0; round < 7; round += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(url);
    await page.waitForSelector("a.loop");
    await page.goto("about:blank");
    await page.goto(`${base}/#/l/${loop}`);
    // The frame after the figures are there.
    const content = await page.evaluate(() => new Promise((resolve) => {
      const look = () => (document.querySelector(".panel .big b") ? requestAnimationFrame(() => resolve(performance.now())) : requestAnimationFrame(look));
      look();
    }));
    const first = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    paints.push(first);
    contents.push(content);
    await context.close();
  }
  return { paint: middle(paints), content: middle(contents) };
}

async function screen() {
  const page = await browser.newPage();
  await page.goto(url);
  await page.locator("a.loop").click();
  await page.waitForSelector(".connection.on");
  await page.goto(`${page.url().replace(/\/?(\?.*)?$/, "")}/events`);
  await page.waitForSelector(".event");
  // When each event was first in a frame that was painted.
  const seen = await page.evaluate((most) => new Promise((resolve) => {
    const at = {};
    const first = new Set([...document.querySelectorAll(".event .no")].map((node) => node.textContent));
    const note = () => requestAnimationFrame(() => setTimeout(() => {
      const now = Date.now();
      for (const node of document.querySelectorAll(".event .no")) if (!first.has(node.textContent)) at[node.textContent.replaceAll(",", "")] ??= now;
      if (Object.keys(at).length >= most) resolve(at);
    }));
    new MutationObserver(note).observe(document.querySelector(".rows"), { childList: true });
  }), events);
  const late = [];
  for (const [seq, now] of Object.entries(seen)) {
    const event = await page.evaluate(async ([path]) => (await fetch(path)).json(), [`/api/v1/loops/main/events/${seq}`]);
    late.push(now - Date.parse(event.at));
  }
  return { late };
}

console.log(JSON.stringify(await (what === "paint" ? paint() : screen())));
await browser.close();
