import assert from 'node:assert/strict'
import { test } from 'tap'
import { type AskedFor, askedFor } from '../../src/classify/verdict/asked.ts'
import { HeaderIndex } from '../../src/classify/known/index/header-index.ts'
import { Reading } from '../../src/classify/verdict/reading.ts'

const CASES: readonly (readonly [asked: AskedFor, method: string, target: string, ...headers: string[]])[] = [
  ['robots', 'GET', '/robots.txt'],
  ['robots', 'HEAD', '/robots.txt?v=1'],
  ['page', 'GET', '/robots.txt.html'],
  ['page', 'GET', '/a/robots.txt'],
  ['other', 'POST', '/robots.txt'],
  ['sitemap', 'GET', '/sitemap.xml'],
  ['sitemap', 'GET', '/wp-sitemap-posts-1.xml?x=1'],
  ['sitemap', 'GET', '/a/sitemap_index.xml.gz'],
  ['sitemap', 'HEAD', '/sitemap.txt'],
  ['page', 'GET', '/sitemap'],
  ['page', 'GET', '/sitemap.xml/more'],
  ['page', 'GET', '/?file=sitemap.xml'],
  ['check', 'HEAD', '/b'],
  ['check', 'HEAD', '/a.png'],
  ['part', 'GET', '/a.js?v=2'],
  ['part', 'GET', '/c.woff2'],
  ['page', 'GET', '/b.WOFF2'],
  ['page', 'GET', '/a.css/more'],
  ['page', 'GET', '/?file=a.css'],
  ['part', 'GET', '/a', 'sec-fetch-dest', 'style'],
  ['page', 'GET', '/a.css', 'Sec-Fetch-Dest', 'document'],
  ['part', 'GET', '/frame', 'sec-fetch-dest', 'iframe'],
  ['part', 'GET', '/film', 'sec-fetch-dest', 'video'],
  ['aside', 'GET', '/a.png', 'sec-fetch-dest', 'empty'],
  ['aside', 'GET', '/api/items', 'sec-fetch-dest', 'empty', 'accept', '*/*'],
  ['other', 'POST', '/a.css'],
  ['other', 'OPTIONS', '/b'],
  ['page', 'GET', '/b', 'accept', '*/*'],
  ['page', 'GET', '/b', 'accept', 'text/html,application/xhtml+xml;q=0.9'],
  ['other', 'GET', '/b', 'accept', 'application/json, text/plain, */*'],
  ['other', 'GET', '/b', 'accept', 'application/rss+xml'],
  ['other', 'GET', '/b', 'authorization', 'Bearer a'],
  ['other', 'GET', '/b', 'x-api-key', 'a'],
  ['other', 'GET', '/b', 'sec-fetch-dest', 'document', 'sec-purpose', 'prefetch'],
  ['other', 'GET', '/b', 'purpose', 'prefetch'],
  ['aside', 'GET', '/live', 'upgrade', 'websocket', 'connection', 'Upgrade'],
]

/** Over http, and of old, browsers do not say what for. */
const OF_BROWSERS: typeof CASES = [
  ['page', 'GET', '/b', 'accept', 'text/html,*/*;q=0.8'],
  ['aside', 'GET', '/b', 'accept', '*/*'],
  ['aside', 'GET', '/b', 'accept', 'image/avif,image/webp,*/*'],
  ['aside', 'GET', '/b'],
  ['part', 'GET', '/a.css', 'accept', '*/*'],
]

for (const [asked, method, target, ...headers] of CASES)
  test(`${method} ${target} ${headers.join(' ')}`, async () => {
    assert.equal(askedOf(method, target, headers), asked)
  })

for (const [asked, method, target, ...headers] of OF_BROWSERS)
  test(`a browser: ${method} ${target} ${headers.join(' ')}`, async () => {
    assert.equal(askedOf(method, target, headers, true), asked)
  })

test('reading very long targets takes linear time', async () => {
  for (const part of ['/sitemap', 'sitemap', '.sitemap.', '/-sitemap.xml', '.js', '/robots.txt?'])
    assert.equal(askedOf('GET', `/${part.repeat(8_388_608 / part.length)}!`, []), 'page', part)
})

function askedOf(method: string, target: string, rawHeaders: readonly string[], isBrowser = false): AskedFor {
  const head = { method, target, version: '11', rawHeaders } as const
  const reading = new Reading()
  reading.read(head, new HeaderIndex([]))
  return askedFor(head, reading, isBrowser)
}
