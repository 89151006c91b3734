import { setTimeout as wait } from 'node:timers/promises'
import { readFileSync } from 'node:fs'
import { signAsAgent } from '../../identity/keys/request-signer.ts'
import { readSigningKeys } from '../../identity/keys/signing-key.ts'

/**
 * One of the demo's clients, in its own process like a real client. It sends requests until its parent is
 * gone. Its headers are those of its library.
 */
type Ask = () => Promise<unknown>

const [kind = '', url = '', agent = '', keyFile = ''] = process.argv.slice(2)

const KINDS: Readonly<Record<string, () => Promise<Ask> | Ask>> = {
  node: () => () => fetch(`${url}/api`),
  pretender: () => () => fetch(`${url}/`, { headers: CHROME }),
  crawler: () => {
    const [key] = readSigningKeys(readFileSync(keyFile, 'utf8'))
    return () => fetch(`${url}/article`, { headers: { 'User-Agent': 'demo-crawler/1.0', ...signed(key) } })
  },
  mcp: async () => {
    const { createMCPClient } = await import('@ai-sdk/mcp')
    return async () => {
      const client = await createMCPClient({ transport: { type: 'http', url: `${url}/mcp` } })
      await client.close()
    }
  },
}

/** Chrome's headers. The TLS fingerprint of this process differs from Chrome's. */
const CHROME = {
  'User-Agent':
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'Accept-Language': 'en-US,en;q=0.9',
}

function signed(key: Parameters<typeof signAsAgent>[2]): Record<string, string> {
  const { origin, pathname } = new URL(`${url}/article`)
  const createdS = Math.floor(Date.now() / 1_000)
  const flat = signAsAgent(
    { base: origin, method: 'GET', target: pathname, rawHeaders: [] },
    {
      agent,
      form: 'dictionary',
      createdS,
      expiresS: createdS + 60,
      nonce: crypto.randomUUID(),
      components: ['@authority', 'signature-agent;key=sig1'],
    },
    key,
  )
  return Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]!]] : [])))
}

async function main(): Promise<void> {
  // stdin closes when the demo ends for any reason.
  process.stdin.on('end', () => process.exit()).resume()
  const ask = await KINDS[kind]!()
  for (;;) {
    await ask().catch(() => undefined)
    await wait(EVERY_MS)
  }
}

const EVERY_MS = 1_500

void main()
