import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { analysisIn } from '../../src/dashboard/pages/explore/analysis.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'
import { fillCatalogue } from './catalogue.ts'

const skip = skipped('chromium')
const CURL = 't13i3111h2_e8f1e7e78f70_b26ce05bbdd6'

test('whatever is pasted is named, and why', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await fillCatalogue(manage.storeUrl)
  await goTo('explore')
  const box = page.getByLabel(/^Fingerprint, headers/)
  const look = page.getByRole('button', { name: 'Search' })
  await box.fill(CURL)
  await look.click()
  await page.waitForURL(new RegExp(`fingerprint=${CURL}`))
  await page.getByRole('heading', { name: 'Fingerprint: JA4' }).waitFor()
  await page.getByRole('link', { name: 'curl', exact: true }).first().waitFor()
  await looksFine(page, 'explore-fingerprint')
  await page.reload()
  await page.getByRole('heading', { name: 'Fingerprint: JA4' }).waitFor()

  const sent: string[] = []
  page.on('request', (request) => sent.push(request.postData() ?? ''))
  await box.fill(
    '> GET / HTTP/1.1\n> Host: x\n> User-Agent: GPTBot/1.2\n> Authorization: Bearer never-to-be-sent',
  )
  await look.click()
  await page.getByRole('heading', { name: 'Verdict: agent' }).waitFor()
  await page.getByText('the User-Agent names GPTBot').waitFor()
  await page.getByText('Values not sent: Authorization').waitFor()
  assert.ok(sent.join('').includes('GPTBot') && !sent.join('').includes('never-to-be-sent'))
  assert.ok(!page.url().includes('?'))
  await looksFine(page, 'explore-request')
  await box.fill('what is\nthis')
  await look.click()
  await page.getByText('Cannot read this input: line 1 is not a header').waitFor()
  assert.equal(await box.getAttribute('aria-invalid'), 'true')
})

test('a capture is dropped, and who is in it', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await fillCatalogue(manage.storeUrl)
  await goTo('explore')
  const file = page.getByLabel('Capture file')
  await file.setInputFiles('test/captures/sample.pcapng')
  const table = page.getByRole('table', { name: 'Findings' })
  await table.getByRole('link').first().waitFor()
  await page.getByText(/^sample\.pcapng: pcapng, \d+ frames, \d+ findings/).waitFor()
  await table.getByText('shop.example.test').first().waitFor()
  await looksFine(page, 'explore-capture')
  await file.setInputFiles({ name: 'no.pcap', mimeType: '', buffer: Buffer.from('not a capture') })
  await page.getByText(/no\.pcap/).waitFor()
  await page.getByText(/Cannot read|unknown format/).waitFor()
  await file.setInputFiles({ name: 'large.pcap', mimeType: '', buffer: Buffer.alloc(5_000_000) })
  await page.getByText(/large\.pcap has 5,000,000 bytes/).waitFor()
  const cut = readFileSync('test/captures/sample.pcapng')
  await file.setInputFiles({ name: 'cut.pcapng', mimeType: '', buffer: cut.subarray(0, cut.length - 100) })
  await page.getByText(/The file is truncated or corrupt at byte/).waitFor()
})

test('an analysis with another shape does not break the page', async () => {
  for (const value of [
    null,
    7,
    'x',
    [],
    {},
    { findings: [null, 1, { kind: 7 }], fingerprints: 3, fault: 'x' },
  ]) {
    const { findings, owners } = analysisIn(value)
    assert.ok(Array.isArray(findings) && owners instanceof Map)
  }
})
