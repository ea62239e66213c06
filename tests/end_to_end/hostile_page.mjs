// Opens a hostile page in headless Chromium, and then the Dagster UI that it attacks.
//
//   node hostile_page.mjs <page> <url of the UI>   prints the findings of the page and of the browser as JSON
//
// FC_CHROMIUM names the browser; /usr/bin/chromium when it is not set.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";

const [page_url, ui] = process.argv.slice(2);
// a name whose owner first sends his own address, then the UI's
const rebound = ui.replace("127.0.0.1", "rebound.example");
const profile = mkdtempSync(join(tmpdir(), "fc-chromium-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.FC_CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--host-resolver-rules=MAP rebound.example 127.0.0.1"],
});
try {
  const page = await browser.newPage();
  await page.goto(page_url);
  const socket = await page.evaluate((address) => new Promise((resolve) => {
    const socket = new WebSocket(address, "graphql-ws");
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("refused");
  }), `${ui.replace("http", "ws")}/graphql`);
  const framed = await page.frameLocator("#ui").locator("body").innerText().catch(() => "");
  await page.waitForLoadState("networkidle");

  const named = await page.goto(`${rebound}/server_info`);
  const failures = [];
  page.on("pageerror", (error) => failures.push(String(error)));
  const sockets = [];
  page.on("websocket", (opened) => opened.on("framereceived", ({ payload }) => sockets.push(String(payload))));
  await page.goto(`${ui}/runs`);
  await page.getByText("Runs").first().waitFor();
  await page.waitForTimeout(2000);
  console.log(JSON.stringify({ socket, framed, rebound: named.status(), failures, sockets }));
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
