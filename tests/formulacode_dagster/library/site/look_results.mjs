// Looks at the page of results in headless Chromium, from its folder; prints what it saw as JSON.
//
//   node look_results.mjs <folder of playwright-core> <folder of the site> <folder for pictures> <a larger site> <a stratum of it>
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, site, pictures, larger, stratum] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules, "package.json"))("playwright-core");
const profile = mkdtempSync(join(tmpdir(), "fc-chromium-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.FC_CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
  viewport: { width: 1200, height: 900 },
});
const seen = { asked: [], errors: [] };

try {
  const page = await browser.newPage();
  page.on("request", (request) => request.url().startsWith("file:") || seen.asked.push(request.url()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  await page.goto(pathToFileURL(join(site, "results.html")).href);
  const column = async (label) =>
    (await page.locator(`#table td[data-label="${label}"]`).allTextContents()).map((text) => text.trim());
  seen.scores = await page.locator(".share b").allTextContents();
  seen.intervals = await page.locator(".share svg .interval").count();
  const cost = page.locator("#table th button", { hasText: "Cost" });
  await cost.click();
  seen.byCost = await column("Cost");
  await cost.click();
  seen.byCostAgain = await column("Cost");
  await page.screenshot({ path: join(pictures, "results.png") });
  seen.tasks = await column("Tasks");
  await page.selectOption("#filter-month", "2026-02");
  seen.ofAMonth = await column("Tasks");
  await page.fill("#filter-dollars", "1");
  seen.cheap = await page.locator("#table tbody th a").allTextContents();
  await page.locator("#table tbody th a").first().click();
  seen.agent = await page.locator("h1").textContent();
  seen.outcomes = await column("Outcome");
  seen.hacked = await page.evaluate(() => window.hacked ?? null);
  await page.goto(pathToFileURL(join(larger, "results.html")).href);
  await page.selectOption("#filter-month", "2026-02");
  await page.selectOption("#filter-stratum", stratum);
  seen.ofBoth = await column("Tasks");
  seen.address = new URL(page.url()).hash;
  seen.impossible = await page.locator("#filter-stratum option:disabled").evaluateAll((all) => all.map(({ value }) => value));
  await page.screenshot({ path: join(pictures, "results-of-both.png") });
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(seen));
