// Looks at pages in headless Chromium, from their folder, at three widths and in two schemes; prints what it saw as JSON.
//
//   node pages.mjs <folder of node_modules> <folder of the pages> <folder for pictures> <page> …
//
// FC_CHROMIUM names the browser; /usr/bin/chromium when it is not set.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, site, pictures, ...pages] = process.argv.slice(2);
const require = createRequire(resolve(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf-8");
const profile = mkdtempSync(join(tmpdir(), "fc-chromium-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.FC_CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"],
});
const seen = { asked: [], errors: [], overflow: {}, violations: [] };

try {
  const page = await browser.newPage();
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || seen.asked.push(request.url()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  page.on("dialog", (dialog) => seen.errors.push(dialog.message()));
  for (const name of pages) {
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const width of [375, 768, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(pathToFileURL(join(site, name)).href);
        await page.evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = true)));
        const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        const picture = `${name.replaceAll("/", "-").replace(".html", "")}-${width}-${colorScheme}.png`;
        if (over > 0) seen.overflow[picture] = over;
        if (pictures) await page.screenshot({ path: join(pictures, picture), fullPage: true, caret: "initial", animations: "allow" });
        if (width === 768) continue;
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"], preload: false }));
        for (const { id, impact, nodes } of violations) {
          const where = nodes.slice(0, 3).map((node) => `${node.target} ${node.any?.[0]?.message ?? node.failureSummary}`);
          seen.violations.push({ picture, id, impact, where });
        }
      }
    }
  }
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(seen));
