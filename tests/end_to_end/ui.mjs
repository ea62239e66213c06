// Drives the Dagster UI in headless Chromium.
//
//   node ui.mjs tour  <url> <month> <folder>   visits the pages a person looks at; prints what is on them as JSON
//   node ui.mjs graph <url> <picture.png>      the asset graph, all groups open, cropped
//
// FC_CHROMIUM names the browser; /usr/bin/chromium when it is not set.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

import { chromium } from "playwright-core";

const GROUPS = ["intake", "selection", "build", "measure", "release", "dashboards", "operations"];
const LAST_ASSET = "monthly_report";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const TIMEOUT = 60_000;
const graphPath = `/asset-groups/?expanded=${GROUPS.map((group) => `global@global:${group}`).join(",")}`;

async function withPage(viewport, scale, use) {
  const profile = mkdtempSync(join(tmpdir(), "fc-chromium-"));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.FC_CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [...FLAGS, "--disable-component-update", "--disable-sync"],
    viewport,
    deviceScaleFactor: scale,
  });
  try {
    browser.setDefaultTimeout(TIMEOUT);
    await use(await browser.newPage());
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

// the layout is animated, and statuses come in later requests
async function settle(page) {
  await page.waitForLoadState("networkidle");
  await page.waitForTimeout(1500);
}

async function openGraph(page, url) {
  await page.goto(url + graphPath);
  await page.locator("svg foreignObject", { hasText: LAST_ASSET }).last().waitFor();
  await settle(page);
}

async function graphNodes(page) {
  const boxes = await page.locator("svg foreignObject").evaluateAll((found) =>
    found.map((node) => {
      const { x, y, width, height } = node.getBoundingClientRect();
      return { group: node.classList.contains("group"), name: node.textContent.trim(), x, y, width, height };
    }),
  );
  return boxes.filter((box) => box.name);
}

async function tour(url, month, folder) {
  mkdirSync(folder, { recursive: true });
  const seen = {};
  await withPage({ width: 2400, height: 1000 }, 1, async (page) => {
    const shoot = (name) => page.screenshot({ path: join(folder, `${name}.png`) });
    const failures = [];
    page.on("pageerror", (error) => failures.push(String(error)));
    page.on("request", (request) => {
      if (!request.url().startsWith(url) && /^https?:/.test(request.url())) failures.push(`asked ${request.url()}`);
    });

    await openGraph(page, url);
    const nodes = await graphNodes(page);
    seen.groups = nodes.filter((node) => node.group).map((node) => node.name);
    seen.assets = nodes.filter((node) => !node.group).map((node) => node.name.match(/^[a-z_]+/)[0]);
    await shoot("asset-graph");
    await page.setViewportSize({ width: 1600, height: 1100 });

    await page.goto(`${url}/assets/measurements?view=overview`);
    await page.getByText("Column name").waitFor();
    await settle(page);
    seen.overview = await page.locator("body").innerText();
    await shoot("asset");

    await page.goto(`${url}/assets/measurements?view=partitions&partition=${month}`);
    await page.getByText("Latest materialization").waitFor();
    await settle(page);
    seen.partition = await page.locator(`[title="${month}"]`).evaluateAll((titles) => {
      const [row, heading] = [titles.at(0), titles.at(-1)].map((title) => title.closest("[data-tooltip]"));
      const colour = (element) => getComputedStyle(element).backgroundColor;
      const tag = heading.querySelector("[class*=BaseTag]") ?? heading.parentElement.querySelector("[class*=BaseTag]");
      return { status: tag.textContent, tag: colour(tag), dot: colour(row.nextElementSibling) };
    });
    await shoot("partition");

    await page.goto(`${url}/assets/pull_requests?view=checks&checkDetail=counts_match`);
    await page.getByText("Evaluation result").waitFor();
    await settle(page);
    seen.check = await page.locator("body").innerText();
    await shoot("check");

    await page.goto(`${url}/assets/monthly_report?view=partitions&partition=${month}`);
    const row = page.locator("tr", { has: page.getByText("funnel", { exact: true }) });
    await row.getByText("[Show Markdown]").waitFor();
    await settle(page);
    await shoot("report");
    await row.getByText("[Show Markdown]").click();
    const picture = page.getByRole("img", { name: "funnel" });
    await picture.waitFor();
    await page.waitForTimeout(1000);
    seen.picture = await picture.evaluate((image) => ({
      complete: image.complete,
      width: image.naturalWidth,
      height: image.naturalHeight,
      png: image.src.startsWith("data:image/png;base64,"),
    }));
    await shoot("funnel");
    seen.failures = failures;
  });
  console.log(JSON.stringify(seen));
}

// names are made as large as their boxes allow, so that they can be read in a README
const PICTURE_STYLE = `
  :root, body { --color-lineage-edge: #8a94a6 !important; }
  [class*="zoomSliderContainer"] { visibility: hidden; }
  [class*="AssetNode_minimalAssetNodeBox"] { background: #e8ecf4 !important; }
  [class*="AssetNode_minimalName"] { font-size: 27px !important; background: transparent !important; }
  [class*="ExpandedGroupNode_groupNodeHeaderBox"] [data-tooltip] { font-size: 44px !important; line-height: 52px !important; }
  [class*="ExpandedGroupNode_groupNodeHeaderBox"] [role="img"] { display: none !important; }
`;

async function graph(url, target) {
  mkdirSync(dirname(resolve(target)), { recursive: true });
  await withPage({ width: 2200, height: 1160 }, 2, async (page) => {
    await openGraph(page, url);
    await page.addStyleTag({ content: PICTURE_STYLE });
    await page.waitForTimeout(500);
    const nodes = await graphNodes(page);
    const margin = 16;
    const left = Math.min(...nodes.map((node) => node.x)) - margin;
    const top = Math.min(...nodes.map((node) => node.y)) - margin;
    const right = Math.max(...nodes.map((node) => node.x + node.width)) + margin;
    const bottom = Math.max(...nodes.map((node) => node.y + node.height)) + margin;
    const clip = { x: left, y: top, width: right - left, height: bottom - top };
    await page.screenshot({ path: target, clip });
  });
}

const [command, url, ...rest] = process.argv.slice(2);
if (command === "tour" && rest.length === 2) {
  await tour(url, ...rest);
} else if (command === "graph" && rest.length === 1) {
  await graph(url, ...rest);
} else {
  console.error("usage: node ui.mjs tour <url> <month> <folder> | graph <url> <picture.png>");
  process.exitCode = 2;
}
