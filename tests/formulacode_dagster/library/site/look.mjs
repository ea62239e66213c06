// Looks at a site in headless Chromium, from its folder; prints what it saw as JSON.
//
//   node look.mjs <folder of playwright-core> <folder of the site> <task id> <folder for pictures>
//
// FC_CHROMIUM names the browser; /usr/bin/chromium when it is not set.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, site, task, pictures] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules, "package.json"))("playwright-core");
const profile = mkdtempSync(join(tmpdir(), "fc-chromium-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.FC_CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
  viewport: { width: 1200, height: 900 },
});
const seen = { asked: [], errors: [] };

function listen(page) {
  page.on("request", (request) => request.url().startsWith("file:") || seen.asked.push(request.url()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  page.on("dialog", (dialog) => seen.errors.push(dialog.message()));
}

// what a stranger's text would have done, had it been more than text
const hacked = (page) => page.evaluate(() => [window.hacked ?? null, document.querySelectorAll("main img, main script").length]);
const url = (name) => pathToFileURL(join(site, name)).href;

try {
  const page = await browser.newPage();
  listen(page);
  await page.goto(url("index.html"));
  await page.locator("#table tbody tr").first().waitFor();
  seen.all = await page.locator("#count").textContent();
  seen.shown = await page.locator("#table tbody tr").count();
  seen.slowest = await page.evaluate(() => {
    // the least of several: what a busy machine does in between only adds
    const timed = (act) => {
      const times = [];
      for (let time = 0; time < 5; time += 1) {
        const started = performance.now();
        act();
        document.body.getBoundingClientRect();
        times.push(performance.now() - started);
      }
      return Math.min(...times);
    };
    const typed = (id, value) => () => {
      const input = document.getElementById(`filter-${id}`);
      input.value = value;
      input.dispatchEvent(new Event("input"));
    };
    const repository = document.getElementById("filter-repo_name").options[3].value;
    return Math.max(
      ...[["q", "fast-12"], ["q", ""], ["repo_name", repository], ["repo_name", ""]].map((each) => timed(typed(...each))),
      ...[...document.querySelectorAll("[data-sort]")].map((button) => timed(() => button.click())),
    );
  });
  await page.fill("#filter-q", task);
  seen.filtered = await page.locator("#count").textContent();
  await page.fill("#filter-q", "");
  await page.fill("#filter-speedup", "3");
  seen.fastest = await page.locator("#count").textContent();
  await page.fill("#filter-speedup", "");
  await page.click("[data-sort=speedup]");
  seen.sorted = await page.locator("#table tbody tr a").first().textContent();
  // the address says what was chosen, and another page takes it over
  await page.selectOption("#filter-month", "2026-02");
  seen.address = new URL(page.url()).hash;
  const again = await browser.newPage();
  await again.goto(page.url());
  seen.opened = await again.locator("#count").textContent();
  await again.goto(url("months.html"));
  await again.keyboard.press("/");
  await again.keyboard.type(task);
  await again.keyboard.press("Enter");
  await again.locator("#filter-q").waitFor();
  seen.searched = await again.locator("#count").textContent();
  await again.close();
  await page.selectOption("#filter-month", "");
  seen.isDark = [];
  for (let time = 0; time < 2; time += 1) {
    await page.click("#colours");
    seen.isDark.push(await page.evaluate(() => getComputedStyle(document.body).colorScheme));
  }
  await page.screenshot({ path: join(pictures, "index.png") });
  seen.hacked = [await hacked(page)];
  await page.fill("#filter-q", task);
  await page.locator("#table tbody a", { hasText: new RegExp(`^${task}$`) }).click();
  await page.locator("h1", { hasText: task }).waitFor();
  seen.solutionHidden = !(await page.locator(".diff").isVisible());
  await page.getByText("Show the solution").click();
  seen.solutionShown = await page.locator(".diff").isVisible();
  const flame = page.locator(".flames svg").first();
  seen.flamesHidden = !(await flame.isVisible());
  await page.locator(".flames summary").first().click();
  seen.flamesShown = await flame.isVisible();
  seen.plots = await page.locator("svg").count();
  seen.files = {};
  for (const name of ["CSV", "JSON"]) {
    const button = page.locator(".file", { hasText: name }).first();
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    seen.files[download.suggestedFilename()] = readFileSync(await download.path(), "utf8");
  }
  seen.hacked.push(await hacked(page));
  await page.screenshot({ path: join(pictures, "task.png"), fullPage: true });
  await page.goto(url("months.html"));
  seen.hacked.push(await hacked(page));
  await page.screenshot({ path: join(pictures, "months.png") });
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
