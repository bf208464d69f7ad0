// An open panel whose engine is killed. Speaks with the test around it as page.mjs does.

import readline from "node:readline";

const { playwright, url, shots } = JSON.parse(process.argv[2]);
const { chromium } = await import(playwright);
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const wish = async (what) => { console.log(what); await lines.next(); };
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"] });

// Whoever reads the panel within seconds of the kill reads the truth, without a reload.
const SECONDS = 6;
const shows = (page, words) => page.waitForFunction((all) => all.every((one) => document.querySelector("#app")?.textContent.includes(one)), words, { timeout: 20000 });
async function dies(page, when) {
  await wish("kill it");
  const killed = Date.now();
  await page.waitForFunction(() => {
    const text = document.querySelector("#app").textContent;
    return text.includes("its engine died") && !text.includes("healthy") && ![...document.querySelectorAll("button")].some((button) => button.textContent === "Pause");
  }, null, { timeout: SECONDS * 1000 }).catch(async () => {
    throw new Error(`${when}: after ${Date.now() - killed} ms it says: ${(await page.locator("#app").textContent()).slice(0, 400)}`);
  });
}

try {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(url);
  await page.locator("a.loop").click();
  await shows(page, ["agent is", "healthy"]);
  await dies(page, "killed at once");
  await page.screenshot({ path: `${shots}/died.png` });

  // It is started again, and the same page follows.
  await wish("start it again");
  await shows(page, ["agent is", "healthy"]);
  await dies(page, "killed again");

  // The page was opened while nobody worked.
  await page.reload();
  await shows(page, ["its engine died"]);
  await wish("start it again");
  await shows(page, ["agent is", "healthy"]);
  await dies(page, "opened before its start");
  console.log("all of it works");
} catch (error) {
  console.log(`FAILED ${error.stack}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  process.exit();
}
