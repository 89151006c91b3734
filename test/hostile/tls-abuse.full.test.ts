import assert from 'node:assert/strict'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import http2 from 'node:http2'
import { join } from 'node:path'
import type tls from 'node:tls'
import { test } from 'tap'
import { plainEnvironment, run, skipped, temporaryFolder } from '../e2e/programs.ts'
import { dialTls, type Peer } from '../proxy/front.ts'
import { PREFACE, settings } from '../proxy/http2-frames.ts'
import { ANY_HOST } from '../proxy/test-gate.ts'
import { CA, goodPair } from '../proxy/test-worker.ts'
import { testLeaf, testPair } from '../proxy/test-certificates.ts'
import { startHolder } from './holder.ts'
import { helloMessage, records } from './tls-hellos.ts'
import { startVictim, type Victim } from './victim.ts'

const HELLO = records(helloMessage())
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const
const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** What a connection for `app.example.test` is asked for, and what it says to it where mismatches are rejected. */
const AUTHORITIES: readonly [authority: string, status: number][] = [
  ['app.example.test', 200],
  ['APP.Example.TEST', 200],
  ['app.example.test:443', 200],
  ['app.example.test:8443', 200],
  ['other.example.test', 421],
  ['localhost', 421],
  ['app.example.test.', 200],
  ['app.example.test.evil.test', 421],
  ['evil-app.example.test', 421],
  ['xn--pp-jia.example.test', 421],
  ['127.0.0.1', 421],
  ['[::1]:443', 421],
]

test('TLS, abused', { timeout: 120_000 }, async (t) => {
  const app = await startHolder(t)
  const keyPairs = await twoPairs()
  const tls = {
    minVersion: 'TLSv1.2',
    clientCertificates: 'off',
    clientCa: null,
  } as const
  const hosts = { ...ANY_HOST, sniMismatch: 'reject', requireSni: true } as const
  const [victim, other, strict] = await Promise.all([
    startVictim(t, { upstream: app.url, keyPairs }),
    startVictim(t, { upstream: app.url, keyPairs }),
    startVictim(t, { upstream: app.url, keyPairs, settings: { tls, hosts } }),
  ])
  const folder = temporaryFolder(t)

  t.test(
    'TLS 1.2: a renegotiation is refused, and costs no handshake (CVE-2011-1473)',
    { skip: skipped('openssl') },
    async () => {
      const before = await handshakes(victim)
      const ask = await run('openssl', ['s_client', '-connect', `127.0.0.1:${victim.port}`, '-tls1_2'], {
        env: plainEnvironment(folder),
        input: 'R\n'.repeat(20),
      })
      assert.match(ask.stderr, /no renegotiation/)
      assert.equal((await handshakes(victim)) - before, 1)
      await served(victim)
    },
  )

  t.test(
    'TLS 1.3: no ticket allows early data, which could be replayed',
    { skip: skipped('openssl') },
    async () => {
      const env = plainEnvironment(folder)
      const [session, early] = [join(folder, 'session.pem'), join(folder, 'early')]
      const argv = ['s_client', '-connect', `127.0.0.1:${victim.port}`, '-tls1_3']
      writeFileSync(early, GET)
      await run('openssl', [...argv, '-sess_out', session, '-ign_eof'], {
        env,
        input: GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
      })
      assert.match(readFileSync(session, 'utf8'), /BEGIN SSL SESSION/)
      app.asked = 0
      const again = await run('openssl', [...argv, '-sess_in', session, '-early_data', early], {
        env,
        input: '',
      })
      assert.match(again.stdout, /Reused, TLSv1.3/)
      assert.match(again.stdout, /Early data was not sent|Early data was rejected/)
      assert.equal(app.asked, 0)
    },
  )

  t.test(
    'TLS: a session goes on where it was begun, as often as its ticket is shown, and nowhere else',
    async () => {
      for (const maxVersion of VERSIONS) {
        const options = { maxVersion, servername: 'app.example.test' }
        const session = await sessionOf(victim.port, options)
        const resumes = async (port: number, more: tls.ConnectionOptions): Promise<boolean> => {
          const peer = await dialTls(port, { ...options, ...more })
          peer.write(GET)
          await peer.hears('200 OK')
          const isReused = (peer.socket as tls.TLSSocket).isSessionReused()
          peer.socket.destroy()
          return isReused
        }
        for (const _ of [1, 2, 3])
          assert.equal(await resumes(victim.port, { session }), true, `${maxVersion}: shown again`)
        assert.equal(await resumes(other.port, { session }), false, `${maxVersion}: at another server`)
        assert.equal(
          await resumes(victim.port, { session, servername: 'other.example.test' }),
          false,
          `${maxVersion}: for another name`,
        )
        await victim.rotate(randomBytes(48))
        assert.equal(await resumes(victim.port, { session }), false, `${maxVersion}: of a key that is gone`)
      }
    },
  )

  t.test(
    'ALPN: a client that speaks the other protocol is not served, and nothing of it comes to the app',
    async () => {
      app.asked = 0
      const h2 = Buffer.concat([PREFACE, settings()])
      const ways: readonly [name: string, alpn: string[] | null, bytes: Buffer | string, answer: RegExp][] = [
        ['h2 where http/1.1 was agreed on', ['http/1.1'], h2, /^HTTP\/1\.1 [45]\d\d /],
        ['h2 where nothing was', null, h2, /^HTTP\/1\.1 [45]\d\d /],
        ['http/1.1 where h2 was agreed on', ['h2'], GET, /^(?!HTTP\/1)/],
        ['TLS inside TLS', ['http/1.1'], HELLO, /^HTTP\/1\.1 [45]\d\d /],
        ['TLS inside TLS where h2 was agreed on', ['h2'], HELLO, /^(?!HTTP\/1)/],
        [
          'a PROXY header inside TLS',
          ['http/1.1'],
          'PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n',
          /^HTTP\/1\.1 [45]\d\d /,
        ],
      ]
      for (const [name, alpn, bytes, answer] of ways) {
        const peer = await dialTls(victim.port, alpn === null ? {} : { ALPNProtocols: alpn })
        peer.write(bytes)
        await peer.closed
        assert.match(peer.text, answer, name)
      }
      // Behind a request that was served, the preface is not valid any more.
      const peer = await dialTls(victim.port, { ALPNProtocols: ['http/1.1'] })
      peer.write(GET)
      await peer.hears('200 OK')
      peer.write(h2)
      await peer.closed
      assert.match(peer.text, /200 OK[\s\S]*HTTP\/1\.1 [45]\d\d /)
      assert.equal(app.asked, 1)
      await served(victim)
    },
  )

  t.test(
    'sni_mismatch reject: a connection serves the one host it was opened for, in HTTP/1 and in streams beside it',
    async (t) => {
      app.asked = 0
      const session = http2.connect(`https://127.0.0.1:${strict.port}`, {
        rejectUnauthorized: false,
        servername: 'app.example.test',
      })
      t.teardown(() => session.destroy())
      for (const [authority, status] of AUTHORITIES) {
        const peer = await dialTls(strict.port, { servername: 'app.example.test' })
        peer.write(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`)
        await peer.hears(/^HTTP\/1\.1 \d{3} /)
        peer.socket.destroy()
        assert.equal(statusOf(peer), status, `HTTP/1, ${authority}`)
        // A browser takes a connection for every host of its certificate (RFC 9113 §9.1.1): that is a 421 to it, not an end.
        const stream = session.request({ ':authority': authority })
        const [head] = await once(stream, 'response')
        stream.close()
        assert.equal(head[':status'], status, `HTTP/2, ${authority}`)
      }
      assert.equal(app.asked, 2 * AUTHORITIES.filter(([, status]) => status === 200).length)
      // A hello without a name would be a way around all of that.
      const nameless = await dialTls(strict.port)
      nameless.write('GET / HTTP/1.1\r\nHost: other.example.test\r\n\r\n')
      await nameless.hears('421 Misdirected')
      nameless.socket.destroy()
    },
  )

  t.test('sni_mismatch allow: the host is the request’s', async () => {
    app.asked = 0
    for (const [authority] of AUTHORITIES) {
      const peer = await dialTls(victim.port, { servername: 'app.example.test' })
      peer.write(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`)
      await peer.hears('200 OK')
      peer.socket.destroy()
    }
    assert.equal(app.asked, AUTHORITIES.length)
  })
})

/** One for `app.example.test`, and one for `other.example.test`. */
async function twoPairs() {
  const names = ['other.example.test']
  return [await goodPair(), testPair(await testLeaf(CA, names), names)]
}

async function sessionOf(port: number, options: tls.ConnectionOptions): Promise<Buffer> {
  const peer = await dialTls(port, options)
  const came: Promise<Buffer[]> = once(peer.socket, 'session')
  peer.write(GET)
  const secure = peer.socket as tls.TLSSocket
  const session = options.maxVersion === 'TLSv1.2' ? secure.getSession()! : (await came)[0]!
  peer.socket.destroy()
  return session
}

async function handshakes(victim: Victim): Promise<number> {
  const { metrics } = await victim.read(false)
  return Object.entries(metrics).reduce(
    (sum, [name, value]) => (name.startsWith('handshakes_total') ? sum + value : sum),
    0,
  )
}

async function served(victim: Victim): Promise<void> {
  const peer = await dialTls(victim.port)
  peer.write(GET)
  await peer.hears('200 OK')
  peer.socket.destroy()
}

function statusOf({ text }: Peer): number {
  return Number(text.slice(9, 12))
}
