import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HelloReader } from '../../src/wire/record.ts'

/**
 * Records the ClientHello of the Chromium on this machine into chrome-hello.json, from a server that reads the hello
 * and hangs up. Run it again when a new Chromium is what a benchmark should speak of.
 */
const server = net.createServer().listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as net.AddressInfo
const profile = await mkdtemp(join(tmpdir(), 'hello-'))
const rules = `MAP shop.example.test 127.0.0.1:${port}`
const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-sync',
]
const quiet = ['--disable-background-networking', '--disable-component-update', `--user-data-dir=${profile}`]
const url = 'https://shop.example.test/'
const browser = spawn('chromium', [...flags, ...quiet, `--host-resolver-rules=${rules}`, url], {
  stdio: 'ignore',
})

const [socket] = (await once(server, 'connection')) as [net.Socket]
const reader = new HelloReader()
const segments: Buffer[] = []
for await (const segment of socket) {
  segments.push(segment)
  if (reader.push(segment).kind !== 'need-more') break
}
browser.kill()
await once(browser, 'exit')
server.close()
await rm(profile, { recursive: true, force: true })

const version = (await versionOf('chromium')).trim()
const recorded = { source: `recorded from ${version}`, stream_hex: Buffer.concat(segments).toString('hex') }
await writeFile(new URL('./chrome-hello.json', import.meta.url), `${JSON.stringify(recorded, null, 2)}\n`)

async function versionOf(program: string): Promise<string> {
  const child = spawn(program, ['--version'], { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  for await (const chunk of child.stdout) text += chunk
  return text
}
