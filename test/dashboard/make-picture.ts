import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { GATEHOUSE } from '../e2e/programs.ts'

/**
 * `npm run picture`: starts the demo, waits until its clients were seen for a while, and writes the picture of the
 * dashboard that the README shows.
 */
const FILE = 'config/guide/dashboard.png'
const BYTES_MAX = 150_000
const WIDTH = 1_280
const HEIGHT = 800
/** Long enough for the plots to have a shape. */
const TRAFFIC_MS = 45_000

const demo = spawn(process.execPath, [GATEHOUSE, 'demo'], { stdio: ['ignore', 'pipe', 'inherit'] })
const address = addressIn(demo.stdout)
try {
  await photograph(await address)
} finally {
  demo.kill('SIGINT')
  await once(demo, 'exit')
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
    const page = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT }, colorScheme: 'light' })
    await page.goto(link)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    await page.waitForTimeout(TRAFFIC_MS)
    await page.screenshot({ path: FILE, type: 'png' })
  } finally {
    await browser.close()
  }
}
