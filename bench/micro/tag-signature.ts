import { createHmac, sign } from 'node:crypto'
import { makeSigningKey, SIGNING_ALGORITHMS, type SigningKey } from '../../src/identity/keys/signing-key.ts'
import { TagSigner } from '../../src/proxy/request/tag-signature.ts'

/**
 * `npm run bench:tag-signature`: the cost for each request of signing our headers for the app, beside the
 * bare node:crypto signature of as many bytes. Both take turns in each round; the figure is the best round.
 */
function main(): void {
  process.stdout.write(`${'µs'.padStart(WIDTH + 8)}${'x bare'.padStart(10)}\n`)
  const bytes = Buffer.alloc(baseLength(new TagSigner(SECRET)), 'x')
  compare('hmac-sha256', new TagSigner(SECRET), () => createHmac('sha256', SECRET).update(bytes).digest())
  for (const algorithm of SIGNING_ALGORITHMS) {
    const key = makeSigningKey(algorithm)
    compare(algorithm, new TagSigner(key), bareSign(key, bytes))
  }
}

function compare(name: string, signer: TagSigner, bare: () => Buffer): void {
  const runs = name.startsWith('rsa') ? RUNS / 20 : RUNS
  let sum = 0
  const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  const each = [() => signer.sign(REQUEST, TAGS, NOW_S + (sum & 1)).length, () => bare().length]
  for (let round = 0; round < ROUNDS; round++)
    for (const [which, run] of each.entries()) {
      const from = process.hrtime.bigint()
      for (let i = 0; i < runs; i++) sum += run()
      best[which] = Math.min(best[which]!, Number(process.hrtime.bigint() - from) / runs)
    }
  const [allNs, bareNs] = best as [number, number]
  const figures = [(allNs / 1000).toFixed(1).padStart(8), (allNs / bareNs).toFixed(2).padStart(10)]
  process.stdout.write(`${name.padEnd(WIDTH)}${figures.join('')}\n`)
  if (sum === 0) throw new Error('nothing was done')
}

/** Of what is signed, nearly. */
function baseLength(signer: TagSigner): number {
  const names = TAGS.filter((_, i) => i % 2 === 0).join('').length
  return signer.sign(REQUEST, TAGS, NOW_S).length + names + TAGS.join('').length
}

function bareSign({ algorithm, key }: SigningKey, bytes: Buffer): () => Buffer {
  switch (algorithm) {
    case 'ed25519':
      return () => sign(null, bytes, key)
    case 'rsa-pss-sha512':
      return () => sign('sha512', bytes, { key, padding: 6, saltLength: 64 })
    default:
      return () => sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' })
  }
}

const SECRET = 'a-secret-of-the-app-and-of-the-gate'
const NOW_S = 1_795_424_600
const RUNS = 2_000
const ROUNDS = 20
const WIDTH = 20
const REQUEST = { method: 'GET', authority: 'gate.example', scheme: 'https', target: '/cart?id=7&of=us' }
const TAGS = [
  ...['X-Agent-Verdict', 'agent', 'X-Agent-Identity', 'gptbot', 'X-Agent-Name', 'GPTBot'],
  ...['X-Agent-Confidence', '0.98', 'X-Agent-Verified', 'web-bot-auth'],
  ...['X-Agent-Decision-Id', '01a3c8d2-7b51-7c11-9a40-5d0f2b6e8c77', 'X-Agent-Rule', 'let-verified-in'],
  ...['X-JA4-Fingerprint', 't13d1516h2_8daaf6152771_d8a2da3f94cd', 'X-Forwarded-For', '203.0.113.77'],
  ...['X-Forwarded-Host', 'gate.example', 'X-Forwarded-Proto', 'https'],
]

main()
