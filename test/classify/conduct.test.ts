import assert from 'node:assert/strict'
import { test } from 'tap'
import { Conduct } from '../../src/classify/conduct.ts'
import type { EvidenceKind } from '../../src/classify/evidence.ts'
import { HeaderIndex } from '../../src/classify/header-index.ts'
import { Reading } from '../../src/classify/reading.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'

/** A request: its target, and headers after it; those that follow a method are sent by it. */
type Asked = readonly [target: string, ...headers: readonly string[]]

const REFERER = ['Referer', 'https://a.test/'] as const

const CASES: readonly (readonly [what: string, asked: readonly Asked[], kinds: readonly EvidenceKind[]])[] = [
  ['nothing but a page', [['/']], []],
  ['robots.txt first', [['/robots.txt'], ['/']], ['robots-first']],
  ['robots.txt with a query', [['/robots.txt?v=1']], ['robots-first']],
  ['robots.txt later', [['/'], ['/robots.txt']], []],
  ['something named alike', [['/robots.txt.html'], ['/a/robots.txt']], []],
  ['pages, each from another', [['/'], ['/b', ...REFERER]], ['crawls']],
  ['pages without a referer', [['/'], ['/b'], ['/c']], []],
  ['robots.txt is no page', [['/robots.txt'], ['/b', ...REFERER]], ['robots-first']],
  ['one page again and again', [['/'], ['/', ...REFERER], ['/', ...REFERER]], []],
  ['a page and its parts', [['/'], ['/site.css', ...REFERER], ['/b', ...REFERER]], ['loads-parts']],
  ['parts by their names', [['/a.js?v=2'], ['/b.WOFF2'], ['/c.woff2']], ['loads-parts']],
  ['what only looks like a part', [['/a.json'], ['/a.css/more'], ['/?file=a.css']], []],
  ['parts by what they are for', [['/a', 'sec-fetch-dest', 'style']], ['loads-parts']],
  ['a page by what it is for', [['/a.css', 'Sec-Fetch-Dest', 'document']], []],
  ['what scripts ask for', [['/a.png', 'sec-fetch-dest', 'empty']], []],
]

for (const [what, asked, kinds] of CASES) {
  test(what, async () => {
    assert.deepEqual(noted(asked.map((each) => ['GET', each] as const)).marks.kinds(), kinds)
  })
}

test('only what is fetched counts', async () => {
  for (const method of ['POST', 'HEAD', 'OPTIONS'])
    assert.deepEqual(
      noted([
        [method, ['/a.css']],
        [method, ['/b', ...REFERER]],
        [method, ['/c', ...REFERER]],
      ]).marks.kinds(),
      [],
      method,
    )
})

test('what was shown stays', async () => {
  const conduct = noted([['GET', ['/robots.txt']]])
  for (let i = 0; i < 50; i++) note(conduct, 'POST', ['/api'])
  assert.deepEqual(conduct.marks.kinds(), ['robots-first'])
})

test('nobody is named before anything was read', async () => {
  assert.equal(new Conduct().agent, null)
})

function noted(asked: readonly (readonly [method: string, asked: Asked])[]): Conduct {
  const conduct = new Conduct()
  for (const [method, each] of asked) note(conduct, method, each)
  return conduct
}

function note(conduct: Conduct, method: string, [target, ...rawHeaders]: Asked): void {
  const head: RequestHead = { method, target, version: '11', rawHeaders }
  const reading = new Reading()
  reading.read(head, new HeaderIndex([]))
  conduct.note(head, reading)
}
