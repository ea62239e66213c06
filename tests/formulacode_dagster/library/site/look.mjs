// Looks at a site in headless Chromium, from its folder; prints what it saw as JSON.
//
//   node look.mjs <folder of playwright-core> <folder of the site> <task id> <folder for pictures>
//
// FC_CHROMIUM names the browser; /usr/bin/chromium when it is not set.
import { mkdtempSync, rmSync } from "node:fs";
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
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
const url = (name) => pathToFileURL(join(site, name)).href;

try {
  const page = await browser.newPage();
  listen(page);
  await page.goto(url("index.html"));
  await page.locator("#tasks tbody tr").first().waitFor();
  seen.all = await page.locator("#count").textContent();
  seen.shown = await page.locator("#tasks tbody tr").count();
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
      const input = document.getElementById(id);
      input.value = value;
      input.dispatchEvent(new Event("input"));
    };
    const repository = document.getElementById("repo_name").options[3].value;
    return Math.max(
      ...[["search", "fast-12"], ["search", ""], ["repo_name", repository], ["repo_name", ""]].map((each) => timed(typed(...each))),
      ...[...document.querySelectorAll("[data-sort]")].map((button) => timed(() => button.click())),
    );
  });
  await page.fill("#search", task);
  seen.filtered = await page.locator("#count").textContent();
  await page.fill("#search", "");
  await page.fill("#least", "3");
  seen.fastest = await page.locator("#count").textContent();
  await page.fill("#least", "");
  await page.click("[data-sort=speedup]");
  seen.sorted = await page.locator("#tasks tbody tr a").first().textContent();
  await page.screenshot({ path: join(pictures, "index.png") });
  seen.hacked = [await hacked(page)];
  await page.fill("#search", task);
  await page.locator("#tasks tbody a", { hasText: new RegExp(`^${task}$`) }).click();
  await page.locator("h1", { hasText: task }).waitFor();
  seen.solutionHidden = !(await page.locator(".diff").isVisible());
  await page.getByText("Show the solution").click();
  seen.solutionShown = await page.locator(".diff").isVisible();
  const flame = page.locator(".flames svg").first();
  seen.flamesHidden = !(await flame.isVisible());
  await page.locator(".flames summary").first().click();
  seen.flamesShown = await flame.isVisible();
  seen.plots = await page.locator("svg").count();
  seen.hacked.push(await hacked(page));
  await page.screenshot({ path: join(pictures, "task.png"), fullPage: true });
  await page.goto(url("months.html"));
  seen.hacked.push(await hacked(page));
  await page.screenshot({ path: join(pictures, "months.png") });
  await page.setViewportSize({ width: 375, height: 800 });
  seen.overflow = {};
  for (const name of ["months.html", "index.html", `tasks/${task}.html`]) {
    await page.goto(url(name));
    seen.overflow[name] = await overflow(page);
    await page.screenshot({ path: join(pictures, `phone-${name.replace("/", "-")}.png`) });
  }
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
