// Opens a page of `terrane report` in Chromium as a person does, and prints what a test checks.
import { chromium } from "playwright-core";
import { pathToFileURL } from "node:url";

const [file, executablePath, screenshots] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const found = { requests: [], violations: [], errors: [] };

/** Opens the page with a color scheme. */
const open = async (colorScheme) => {
  const context = await browser.newContext({ colorScheme, viewport: { width: 1200, height: 900 } });
  const page = await context.newPage();
  page.on("request", (request) => {
    const { protocol, href } = new URL(request.url());
    if (protocol !== "data:") found.requests.push(href);
  });
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("console", (message) => found.errors.push(message.text()));
  await page.exposeFunction("reportViolation", (text) => found.violations.push(text));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      window.reportViolation(`${event.violatedDirective}: ${event.blockedURI}`),
    );
  });
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector("#search");
  return page;
};

/** Returns the names of the metrics and members that are visible. */
const visible = (page) =>
  page.$$eval(".entry td:first-child code", (names) =>
    names.filter((name) => name.checkVisibility()).map((name) => name.textContent),
  );

const shoot = async (page, name) => {
  if (screenshots) await page.screenshot({ path: `${screenshots}/${name}.png` });
};

try {
  const page = await open("light");
  found.title = await page.title();
  found.metrics = (await visible(page)).length;
  await shoot(page, "report");
  await page.fill("#search", "  Delay AVERAGE_departure ");
  found.searched = { names: await visible(page), count: await page.textContent("#found") };
  await page.fill("#search", "nothing has this name");
  found.missed = { names: await visible(page), count: await page.textContent("#found") };
  await page.press("#search", "Enter");
  await page.fill("#search", "");
  found.reset = (await visible(page)).length;
  found.address = new URL(page.url()).protocol + new URL(page.url()).search;

  // Pictures have the colors of the style, which only the policy of the page allows.
  found.picture = await page.$eval("#joins svg .cube rect", (rect) => getComputedStyle(rect).fill);
  await page.click(".lineage-entry summary");
  found.lineage = await page.$eval(".lineage-entry svg", (picture) => picture.checkVisibility());
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  found.printed = await page.$$eval("details", (all) => all.every((one) => one.open));
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background(page);
  const dark = await open("dark");
  found.themes = [light, await background(dark)];
  await dark.click(".lineage-entry summary");
  await dark.locator("#joins").scrollIntoViewIfNeeded();
  await shoot(dark, "report-dark");
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));
