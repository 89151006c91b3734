import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { classify } from '../../src/classify/classify.ts'
import { Conduct } from '../../src/classify/conduct.ts'
import type { Knowledge } from '../../src/classify/knowledge.ts'
import type { Claim } from '../../src/classify/user-agent.ts'
import { loadKnowledge } from '../../src/commands/knowledge-files.ts'
import type { Ja4 } from '../../src/fingerprint/ja4.ts'
import type { ConnectionPrint } from '../../src/fingerprint/print.ts'

const knowledge = await loadKnowledge(null, null)

test("no person's browser is held for anything else, whatever its version, and though nobody knows its TLS", async () => {
  const samples = browserSamples()
  assert.ok(samples.length > 40)
  for (const [id, userAgent] of samples) {
    const claim = knowledge.userAgents.claim(userAgent)
    const rawHeaders = navigation(claim, userAgent)
    for (const ja4 of [null, 't13d1516h2_000000000001_000000000002' as Ja4]) {
      const head = { method: 'GET', target: '/', version: '20', rawHeaders } as const
      const { kind, evidence } = classify(knowledge, print(ja4), head, new Conduct(), 0)
      const found = evidence.map((each) => each.kind).join(' ')
      assert.ok(kind === 'human' || kind === 'unknown', `${id} is ${kind}: ${userAgent}: ${found}`)
    }
  }
})

/** One or two User-Agents of each browser. */
function browserSamples(): readonly (readonly [string, string])[] {
  const file = new URL('user-agents.json', import.meta.url)
  const all: [string, string][] = JSON.parse(readFileSync(file, 'utf8'))
  return all.filter(([id]) => isBrowser(knowledge, id))
}

function isBrowser({ list }: Knowledge, id: string): boolean {
  return list.find((software) => software.id === id)?.kind === 'browser'
}

/** A page typed into the address line, as each engine asks for it over HTTP/2. */
function navigation(claim: Claim, userAgent: string): string[] {
  switch (claim.engine) {
    case 'blink': {
      const { version } = claim
      const brands = `"${greaseBrand(version)}";v="${['8', '99', '24'][version % 3]}", "Chromium";v="${version}"`
      const hints = ['sec-ch-ua', brands, 'sec-ch-ua-mobile', claim.isMobile ? '?1' : '?0']
      return [
        ...[':method', 'GET', ':authority', 'shop.example.test', ':scheme', 'https', ':path', '/'],
        ...(version >= 90 && !claim.isEmbedded ? [...hints, 'sec-ch-ua-platform', platform(claim)] : []),
        ...['upgrade-insecure-requests', '1', 'user-agent', userAgent, 'accept', 'text/html,*/*;q=0.8'],
        ...['sec-fetch-site', 'none', 'sec-fetch-mode', 'navigate', 'sec-fetch-user', '?1'],
        ...['sec-fetch-dest', 'document', 'accept-encoding', 'gzip, deflate, br', 'accept-language', 'en'],
        ...(version >= 125 ? ['priority', 'u=0, i'] : []),
      ]
    }
    case 'gecko':
      return [
        ...[':method', 'GET', ':path', '/', ':authority', 'shop.example.test', ':scheme', 'https'],
        ...['user-agent', userAgent, 'accept', 'text/html', 'accept-language', 'en'],
        ...['accept-encoding', 'gzip, deflate, br, zstd', 'upgrade-insecure-requests', '1'],
        ...['sec-fetch-dest', 'document', 'sec-fetch-mode', 'navigate', 'sec-fetch-site', 'none'],
        ...['sec-fetch-user', '?1', 'priority', 'u=0, i', 'te', 'trailers'],
      ]
    case 'webkit':
      return [
        ...[':method', 'GET', ':scheme', 'https', ':authority', 'shop.example.test', ':path', '/'],
        ...['sec-fetch-dest', 'document', 'user-agent', userAgent, 'accept', 'text/html'],
        ...['sec-fetch-site', 'none', 'sec-fetch-mode', 'navigate', 'accept-language', 'en'],
        ...['priority', 'u=0, i', 'accept-encoding', 'gzip, deflate, br'],
      ]
    default:
      return [':method', 'GET', ':path', '/', 'user-agent', userAgent, 'accept', '*/*']
  }
}

/** User-Agent Client Hints: the brand that is none goes with the version. */
function greaseBrand(version: number): string {
  const characters = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_']
  return `Not${characters[version % 11]}A${characters[(version + 1) % 11]}Brand`
}

function platform(claim: Claim): string {
  const names = { windows: 'Windows', mac: 'macOS', android: 'Android', chromeos: 'Chrome OS', ios: 'iOS' }
  return `"${claim.platform === null || claim.platform === 'linux' ? 'Linux' : names[claim.platform]}"`
}

/** Of a hello of which no more is known. */
function print(ja4: Ja4 | null): ConnectionPrint {
  return {
    ja4,
    stable: null,
    traits: null,
    ja4s: null,
    ja4x: null,
    http2: null,
    noHello: null,
    ja4Source: 'own',
  }
}
