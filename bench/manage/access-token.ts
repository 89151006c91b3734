import { createVerify, verify } from 'node:crypto'
import { join } from 'node:path'
import { createLogTo } from '../../src/shared/log.ts'
import { AccessTokens, looksLikeJwt } from '../../src/manage/auth/oauth/access-tokens.ts'
import { Denials } from '../../src/manage/auth/oauth/denials.ts'
import { principalWithToken } from '../../src/manage/auth/oauth/presented.ts'
import { TokenSigningKeys } from '../../src/manage/auth/oauth/signing-keys.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { Secret } from '../../src/shared/secret.ts'
import { Store } from '../../src/store/store.ts'
import { CompactSign, importJWK } from 'jose'

// What an access token costs: one that is new, beside the bare check of its signature, and one that was seen before.

const PUBLIC_URL = 'https://gate.example'
const TOKENS = 2_000
const ROUNDS = 7
const REQUEST = { proof: '', method: 'GET', path: '/v1/agents', resource: 'v1' } as const

const store = await Store.open('sqlite::memory:')
const nowMs = Date.now
const sealer = new Sealer([new Secret('a key for the bench')], join('nowhere', 'store.key'))
const keys = new TokenSigningKeys(
  store,
  sealer,
  createLogTo('silent', { write: () => undefined }),
  86_400_000,
  nowMs,
)
const denials = new Denials(store, nowMs)
const client = {
  ...{
    id: 'cli_bench',
    name: 'bench',
    secretHash: null,
    authMethod: 'none',
    grantTypes: [],
    redirectUris: [],
  },
  ...{
    scopes: ['read', 'detect'],
    apps: '*' as const,
    jwks: null,
    plan: 'standard',
    origin: 'administrator',
    createdAtMs: 0,
  },
}
await store.transaction((queries) => store.oauthClients.add(client, queries))

const { signer, byKid } = await keys.current()
const privateKey = await importJWK(signer.privateJwk, 'ES256')
const dsaEncoding = 'ieee-p1363'
const publicKey = byKid.get(signer.kid)!

async function token(number: number): Promise<string> {
  const nowS = Math.floor(Date.now() / 1000)
  const claims = {
    ...{
      jti: `token-${number}-of-the-bench`,
      sub: client.id,
      iat: nowS,
      exp: nowS + 600,
      scope: 'read detect',
    },
    ...{ client_id: client.id, iss: PUBLIC_URL, aud: `${PUBLIC_URL}/v1` },
  }
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: signer.kid })
    .sign(privateKey)
}

const documents = { find: async () => null, standing: async () => null }
const tokens = await Promise.all(Array.from({ length: TOKENS }, (_, number) => token(number)))
const best = { oneShot: Infinity, stream: Infinity, fresh: Infinity, seen: Infinity }
for (let round = 0; round < ROUNDS; round++) {
  const checker = new AccessTokens({
    publicUrl: PUBLIC_URL,
    ...{ keys, denials, clients: store.oauthClients, people: null, documents },
  })
  const sums = { oneShot: 0, stream: 0, fresh: 0, seen: 0 }
  const timed = async (of: keyof typeof sums, work: () => Promise<boolean> | boolean) => {
    const startMs = performance.now()
    const result = work()
    const isGood = result instanceof Promise ? await result : result
    sums[of] += performance.now() - startMs
    if (!isGood) throw new Error(`${of}: a good token was refused`)
  }
  // In turn, so that the machine's mood falls on all of them.
  for (const text of tokens) {
    const end = text.lastIndexOf('.')
    await timed('oneShot', () => {
      const signature = Buffer.from(text.slice(end + 1), 'base64url')
      return verify('sha256', Buffer.from(text.slice(0, end)), { key: publicKey, dsaEncoding }, signature)
    })
    await timed('stream', () => {
      const check = createVerify('sha256').update(text.slice(0, end))
      return check.verify({ key: publicKey, dsaEncoding }, text.slice(end + 1), 'base64url')
    })
    await timed('fresh', async () => (await checker.check(text, Date.now())).kind === 'good')
  }
  // As they come: a text that is new each time, as Node has it from a header.
  const headers = tokens.map((text) => Buffer.from(`Bearer ${text}`))
  const startMs = performance.now()
  let known = 0
  for (const header of headers) {
    const token = header.toString('latin1', 7)
    const presented = { scheme: 'bearer', token, ...REQUEST } as const
    const taking = { publicUrl: PUBLIC_URL, store, oauth: { tokens: checker, nonces: null }, nowMs }
    if (looksLikeJwt(token) && (await principalWithToken(presented, taking)).id === client.id) known++
  }
  sums.seen = performance.now() - startMs
  if (known !== TOKENS) throw new Error(`only ${known} were seen before`)
  for (const of of Object.keys(best) as (keyof typeof best)[])
    best[of] = Math.min(best[of], (sums[of] * 1000) / TOKENS)
}
await store.close()
const bare = Math.min(best.oneShot, best.stream)
const lines = [
  `the bare ES256 check   ${bare.toFixed(1)} µs (verify ${best.oneShot.toFixed(1)}, createVerify ${best.stream.toFixed(1)})`,
  `a token that is new    ${best.fresh.toFixed(1)} µs, ${(best.fresh / bare).toFixed(2)} ×`,
  `one that was seen      ${best.seen.toFixed(2)} µs`,
]
process.stdout.write(`${lines.join('\n')}\n`)
