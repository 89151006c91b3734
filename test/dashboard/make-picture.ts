import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { parse } from 'yaml'
import { GATEHOUSE } from '../e2e/programs.ts'
import { toured } from './browser.ts'

/**
 * `npm run picture`: starts the demo with a policy that blocks spoofed browsers, lets a browser visit its app, and writes
 * the picture of the dashboard that the README shows, once the plot has a shape and something was blocked.
 */
const FILE = 'config/guide/dashboard.png'
const BYTES_MAX = 150_000
const POLICY = 'config/block-spoofed-browsers.yaml'
const VIEWPORT = { width: 1_280, height: 740 }
const TRAFFIC_MS = 220_000
const LOOK_EVERY_MS = 500
const DRAWN_MS = 6_000
const VISIT_EVERY_MS = 700

const folder = mkdtempSync(join(tmpdir(), 'picture-'))
const demo = spawn(process.execPath, [GATEHOUSE, 'demo'], {
  env: { ...process.env, TMPDIR: folder },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const address = addressIn(demo.stdout)
try {
  await photograph(await address)
} finally {
  demo.kill('SIGINT')
  await once(demo, 'exit')
  rmSync(folder, { recursive: true, force: true })
}
const { size } = statSync(FILE)
process.stdout.write(`${FILE}: ${size} bytes\n`)
assert.ok(size <= BYTES_MAX, `more than ${BYTES_MAX} bytes`)

/** The link of the demo that signs in. */
async function addressIn(stdout: typeof demo.stdout): Promise<string> {
  let said = ''
  for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
    said += String(chunk)
    const [, link] = /Signs you in +(\S+)/.exec(said) ?? []
    if (link === undefined) continue
    stdout.resume()
    return link
  }
  return assert.fail(`the demo ended: ${said}`)
}

async function photograph(link: string): Promise<void> {
  const executablePath = spawnSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).stdout.trim()
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    usePolicy()
    const [visitor, page] = [
      await visitorOf(browser),
      await browser.newPage({ viewport: VIEWPORT, storageState: toured(link) }),
    ]
    await page.goto(link)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    for (const endMs = Date.now() + TRAFFIC_MS; Date.now() < endMs; ) {
      await visitor.goto('https://localhost:8443/')
      await visitor.waitForTimeout(VISIT_EVERY_MS)
    }
    await page.getByRole('button', { name: '1h', exact: true }).click()
    while (!(await showsABlock(page))) await page.waitForTimeout(LOOK_EVERY_MS)
    await page.waitForTimeout(DRAWN_MS)
    await page.screenshot({ path: FILE })
  } finally {
    await browser.close()
  }
}

async function showsABlock(page: Page): Promise<boolean> {
  const blocked = page.locator('.figures > div', { hasText: /^Blocked/ }).getByRole('link')
  return Number(await blocked.textContent()) > 0
}

/** Replaces the policy file of the demo, which is loaded again when it changes. */
function usePolicy(): void {
  const [file] = globSync('gatehouse-demo-*/policy.json', { cwd: folder })
  const policy = parse(readFileSync(POLICY, 'utf8'))
  writeFileSync(join(folder, file!), JSON.stringify({ ...policy, unknown_signer: { wait: '2s' } }))
}

/** With the User-Agent of a browser that has a window. */
async function visitorOf(browser: Browser): Promise<Page> {
  const [major] = browser.version().split('.')
  const userAgent = `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`
  return browser.newPage({ ignoreHTTPSErrors: true, userAgent })
}
