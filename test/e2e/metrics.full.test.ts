import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'tap'
import { CATEGORIES } from '../../src/classify/known/software.ts'
import { OPERATION_IDS } from '../../src/manage/api/operations.ts'
import { DOCUMENT, everyPage, metricsDocument, metricsIn } from './metrics-list.ts'
import { skipped } from './programs.ts'

const skip = skipped('nats-server') || skipped('curl')

test('config/METRICS.md has every metric there is: else "npm run metrics:docs"', { skip }, async (t) => {
  const pages = await everyPage(t)
  const document = metricsDocument(pages)
  if (process.env['METRICS_DOCS'] === 'write') writeFileSync(DOCUMENT, document)
  assert.equal(readFileSync(DOCUMENT, 'utf8'), document)
  const named = globSync('src/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/\b(?:gauge|counter|histograms?|count)\(\s*'(\w+)',/g)].map(
      ([, name]) => name!,
    ),
  )
  assert.ok(named.length > 80)
  for (const name of named) assert.ok(document.includes(`\`gatehouse_${name}\``), `${name} was never shown`)
  for (const [command, page] of Object.entries(pages))
    for (const metric of metricsIn(page)) isInOrder(command, metric)
  // What requests of clients and calls of the API can bring about, if all of it happens.
  const fixed = metricsIn(pages['up']!)
    .filter(({ name }) => name !== 'gatehouse_requests_total' && name !== 'gatehouse_manage_requests_total')
    .reduce((sum, { series }) => sum + series, 0)
  const requests = (CATEGORIES.length + 1 + 3) * 7 * 6
  const operations = (OPERATION_IDS.length + 8) * 4
  assert.ok(fixed + requests + operations <= SERIES_MAX, `${fixed} + ${requests} + ${operations}`)
})

/** Prometheus: "Metric and label naming", and that its meaning is clear. */
function isInOrder(
  command: string,
  { name, type, help, labels }: ReturnType<typeof metricsIn>[number],
): void {
  const said = `${command}: ${name}`
  assert.match(name, /^gatehouse_[a-z0-9]+(?:_[a-z0-9]+)*$/, said)
  assert.equal(name.endsWith('_total'), type === 'counter', said)
  if (type === 'histogram') assert.match(name, /_seconds$/, said)
  assert.doesNotMatch(name, /_(?:ms|milliseconds|minutes|kib|percent)$/, said)
  assert.match(help, /^[A-Z01].{10,}\.$/, said)
  for (const label of labels) assert.match(label, /^[a-z]+(?:_[a-z]+)*$/, said)
}

const SERIES_MAX = 1_500
