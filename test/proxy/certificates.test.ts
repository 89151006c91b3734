import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConnectionOptions, connect, createServer, type TLSSocket } from 'node:tls'
import forge from 'node-forge'
import { type Test, test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { type MadeCertificate, makeCa, makeLeaf } from '../../src/proxy/tls/certificate-maker.ts'
import { CertificateStore } from '../../src/proxy/tls/certificates.ts'
import { developmentCertificate } from '../../src/proxy/tls/development-ca.ts'
import { type KeyPair, type KeyPairSource, loadKeyPairs } from '../../src/proxy/tls/key-pair.ts'
import { type ClientHello, parseClientHello } from '../../src/wire/client-hello.ts'
import { testCa, testLeaf, testPair, testRsa } from './test-certificates.ts'
import { skipped } from '../e2e/programs.ts'

const NOW = Date.now()
const DAY_MS = 86_400_000

const ca = await testCa()
const ecdsa = await testLeaf(ca, ['a.example.test', '*.b.example.test'])
const other = await testLeaf(ca, ['c.example.test'])
const rsa = testRsa(['a.example.test', '*.b.example.test'])

test('a pair is loaded whatever form it has', async (t) => {
  const { file, load } = workbench(t)
  const encrypted = createPrivateKey(ecdsa.key).export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'open sesame',
  })
  const legacy = forge.pki.encryptRsaPrivateKey(forge.pki.privateKeyFromPem(rsa.key), 'open sesame', {
    algorithm: 'des' as '3des',
    legacy: true,
  })
  const der = new X509Certificate(ecdsa.certificate).raw
  const keyDer = createPrivateKey(ecdsa.key).export({ type: 'sec1', format: 'der' })
  const chain = ecdsa.certificate + ca.certificate
  const forms: readonly (readonly [string, string, KeyPairSource])[] = [
    ['PEM', 'ec', source(file('cert.pem', ecdsa.certificate), file('key.pem', ecdsa.key))],
    ['both in one file', 'ec', source(file('both.pem', ecdsa.key + ecdsa.certificate), null)],
    ['an encrypted key', 'ec', source(file('e.pem', chain), file('e.key', encrypted), 'open sesame')],
    ['DES', 'rsa', source(file('l.pem', rsa.certificate), file('l.key', legacy), 'open sesame')],
    ['DER', 'ec', source(file('cert.der', der), file('key.der', keyDer))],
    [
      'the chain in the wrong order',
      'ec',
      source(file('w.pem', ca.certificate + ecdsa.certificate), file('w.key', ecdsa.key)),
    ],
  ]
  for (const [name, keyType, from] of forms) {
    const { pairs, warnings } = await load(from)
    assert.equal(pairs[0]!.keyType, keyType, name)
    assert.deepEqual(pairs[0]!.dnsNames, ['a.example.test', '*.b.example.test'], name)
    assert.ok(new X509Certificate(pairs[0]!.chain).checkPrivateKey(createPrivateKey(pairs[0]!.key)), name)
    assert.deepEqual(warnings, [], name)
  }
  const { pairs } = await load(forms.at(-1)![2])
  assert.equal(pairs[0]!.chain, ecdsa.certificate + ca.certificate)
})

test('PKCS#12 is loaded, RSA and ECDSA, with the ciphers of then and now', {
  skip: skipped('openssl'),
}, async (t) => {
  const { folder, file, load } = workbench(t)
  for (const [name, made] of Object.entries({ ecdsa, rsa })) {
    file(`${name}.pem`, made.certificate + ca.certificate)
    file(`${name}.key`, made.key)
    for (const how of ['modern', 'legacy']) {
      const out = join(folder, `${name}-${how}.p12`)
      const legacy =
        how === 'legacy' ? ['-legacy', '-certpbe', 'PBE-SHA1-RC2-40', '-keypbe', 'PBE-SHA1-3DES'] : []
      const { status, stderr } = spawnSync('openssl', [
        ...['pkcs12', '-export', ...legacy, '-in', join(folder, `${name}.pem`), '-out', out],
        ...['-inkey', join(folder, `${name}.key`), '-passout', 'pass:open sesame'],
      ])
      assert.equal(status, 0, String(stderr))
      const { pairs } = await load(source(out, null, 'open sesame'))
      assert.equal(pairs[0]!.keyType, name === 'rsa' ? 'rsa' : 'ec')
      assert.ok(new X509Certificate(pairs[0]!.chain).checkPrivateKey(createPrivateKey(pairs[0]!.key)))
      await refuses(
        load(source(out, null, 'wrong')),
        /-(modern|legacy)\.p12: the passphrase does not open it$/,
      )
      await refuses(load(source(out, null)), /\.p12 needs a passphrase$/)
    }
  }
})

test('what is wrong with a pair is said in plain words, all of it at once', async (t) => {
  const { folder, file, load } = workbench(t)
  const cert = file('cert.pem', ecdsa.certificate)
  const key = file('key.pem', ecdsa.key)
  const encrypted = file(
    'encrypted.key',
    createPrivateKey(ecdsa.key).export({
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-256-cbc',
      passphrase: 'right',
    }),
  )
  const weak = testRsa(['a.example.test'], 1024)
  const damaged = ecdsa.certificate.replace(/\n(.)/, (_, first) => `\n${first === 'A' ? 'B' : 'A'}`)
  const cases: readonly (readonly [KeyPairSource, RegExp])[] = [
    [source(join(folder, 'none.pem'), key), /none\.pem does not exist$/],
    [source(cert, join(folder, 'none.key')), /none\.key does not exist$/],
    [source(folder, key), /is a folder$/],
    [
      source(key, cert),
      /key\.pem holds a private key and no certificate; are --cert and --key the wrong way round\?$/,
    ],
    [source(cert, cert), /cert\.pem holds a certificate and no private key$/],
    [source(cert, null), /cert\.pem holds a certificate and no private key$/],
    [source(file('text.pem', 'hello'), key), /text\.pem is neither PEM, DER nor PKCS#12$/],
    [source(file('empty.pem', ''), key), /empty\.pem is neither PEM, DER nor PKCS#12$/],
    [
      source(file('request.pem', pem('CERTIFICATE REQUEST')), key),
      /request\.pem holds a certificate request/,
    ],
    [source(file('damaged.pem', damaged), key), /damaged\.pem: certificate 1 of 1 in it is damaged$/],
    [
      source(cert, file('damaged.key', pem('PRIVATE KEY'))),
      /damaged\.key: the private key in it is damaged$/,
    ],
    [source(cert, file('public.key', pem('PUBLIC KEY'))), /public\.key holds a public key; the private one/],
    [source(cert, file('nothing.key', 'x')), /nothing\.key holds no private key$/],
    [source(cert, encrypted), /encrypted\.key is encrypted: its passphrase is needed$/],
    [source(cert, encrypted, 'wrong'), /encrypted\.key: the passphrase does not open it$/],
    [
      source(cert, file('other.key', other.key)),
      /cert\.pem does not belong to the key in .*other\.key: both are of the same type/,
    ],
    [source(cert, file('rsa.key', rsa.key)), /the certificate is for an ec key, the key is rsa$/],
    [
      source(file('weak.pem', weak.certificate), file('weak.key', weak.key)),
      /weak\.pem: its key or signature is too weak|weak\.pem its key/,
    ],
    [
      source(file('der.der', new X509Certificate(ecdsa.certificate).raw), null),
      /der\.der holds a certificate without a key/,
    ],
    [source(file('huge.pem', 'x'.repeat(2 ** 20 + 1)), key), /huge\.pem is larger than 1 MiB/],
  ]
  for (const [from, what] of cases) await refuses(load(from), what)

  const all = await loadKeyPairs(
    cases.map(([from]) => from),
    NOW,
  ).catch((error: Error) => error.message)
  assert.equal(String(all).split('\n').length, cases.length)
  for (const secret of [ecdsa.key, rsa.key, weak.key])
    assert.ok(!String(all).includes(secret.split('\n')[1]!))
})

test('reports a file without read permission', {
  skip: process.getuid?.() === 0 && 'root reads everything',
}, async (t) => {
  const { file, load } = workbench(t)
  const key = file('key.pem', ecdsa.key)
  chmodSync(key, 0)
  await refuses(
    load(source(file('cert.pem', ecdsa.certificate), key)),
    /key\.pem cannot be read: permission denied$/,
  )
})

test('warns about what clients will refuse', async (t) => {
  const { file, load } = workbench(t)
  const old = await testLeaf(ca, ['a.example.test'], NOW - 100 * DAY_MS, 90)
  const early = await testLeaf(ca, ['a.example.test'], NOW + 10 * DAY_MS, 90)
  const warningsFor = async (certificate: string, key: string) => {
    return (await load(source(file('c.pem', certificate), file('c.key', key)))).warnings
  }
  assert.match(
    (await warningsFor(old.certificate, old.key))[0]!,
    /c\.pem: expired on .* clients will refuse it$/,
  )
  assert.match((await warningsFor(early.certificate, early.key))[0]!, /c\.pem: is not valid before /)
  const strange = await warningsFor(ecdsa.certificate + rsa.certificate, ecdsa.key)
  assert.match(strange[0]!, /1 certificates in it are not of its chain; they are left out$/)
  assert.match(strange[1]!, /its issuer's certificate is missing/)
})

test('a client gets the certificate of the name it asks for', async (t) => {
  const first = testPair(ecdsa, ['a.example.test', '*.b.example.test'])
  const second = testPair(other, ['c.example.test'])
  const store = new CertificateStore([first, second], {})
  const client = await serve(t, store)
  const cases: readonly (readonly [string | null, object])[] = [
    ['a.example.test', first],
    ['A.EXAMPLE.test', first],
    ['a.example.test.', first],
    ['x.b.example.test', first],
    ['x.y.b.example.test', first], // a wildcard is one label; the default is the first
    ['c.example.test', second],
    ['x.c.example.test', first],
    ['elsewhere.example.test', first],
    [null, first],
  ]
  for (const [serverName, pair] of cases) {
    const made = pair === first ? ecdsa : other
    assert.equal(await client(serverName), fingerprint(made), String(serverName))
  }
  assert.deepEqual(
    ['a.example.test', 'x.b.example.test', 'b.example.test', 'x.y.b.example.test', 'test', ''].map((name) =>
      store.covers(name),
    ),
    [true, true, false, false, false, false],
  )
})

test('for one name, the key type is one that the client can verify', async (t) => {
  const names = ['a.example.test', '*.b.example.test']
  const pairs = [testPair(ecdsa, names), testPair(rsa, names, RSA)]
  for (const order of [pairs, pairs.toReversed()]) {
    const client = await serve(t, new CertificateStore(order, {}))
    for (const serverName of ['a.example.test', 'x.b.example.test', 'elsewhere.example.test']) {
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const got = (sigalgs?: string) => client(serverName, { maxVersion, ...(sigalgs && { sigalgs }) })
        assert.equal(await got(), fingerprint(ecdsa), `${serverName} ${maxVersion}`)
        assert.equal(await got('ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256'), fingerprint(ecdsa))
        assert.equal(await got('ecdsa_secp384r1_sha384:rsa_pss_rsae_sha256'), fingerprint(rsa))
        assert.equal(await got('rsa_pss_rsae_sha256'), fingerprint(rsa), `${serverName} ${maxVersion}`)
      }
      const ciphers = 'ECDHE-RSA-AES128-GCM-SHA256'
      assert.equal(await client(serverName, { maxVersion: 'TLSv1.2', ciphers }), fingerprint(rsa))
    }
    // Without a name it is for TLS to choose, which has both.
    assert.equal(await client(null, { sigalgs: 'ecdsa_secp256r1_sha256' }), fingerprint(ecdsa))
    assert.equal(await client(null, { sigalgs: 'rsa_pss_rsae_sha256' }), fingerprint(rsa))
  }
})

test('another key type than the default has does not hide the name asked for', async (t) => {
  const pairs = [testPair(ecdsa, ['a.example.test']), testPair(rsa, ['c.example.test'], RSA)]
  for (const order of [pairs, pairs.toReversed()]) {
    const client = await serve(t, new CertificateStore(order, {}))
    assert.equal(await client('c.example.test'), fingerprint(rsa))
    assert.equal(await client('a.example.test'), fingerprint(ecdsa))
  }
})

test('of two for the same name, the one that lives longer is used, also as exact beside wildcard', async (t) => {
  const old = testPair(other, ['a.example.test'], { notAfterMs: NOW })
  const store = new CertificateStore([old, testPair(ecdsa, ['a.example.test'])], {})
  const client = await serve(t, store)
  assert.equal(await client('a.example.test'), fingerprint(ecdsa))
  assert.equal(await client(null), fingerprint(other))
})

test('a replacement counts from the next handshake on; one that cannot be used changes nothing', async (t) => {
  const store = new CertificateStore([testPair(ecdsa, ['a.example.test'])], {})
  const client = await serve(t, store)
  const before = fingerprint(ecdsa)
  assert.equal(await client('a.example.test'), before)
  assert.throws(() => store.replace([testPair({ ...other, key: ecdsa.key }, ['a.example.test'])]))
  assert.equal(await client('a.example.test'), before)
  store.replace([testPair(other, ['a.example.test'])])
  assert.equal(await client('a.example.test'), fingerprint(other))
})

test('the development certificate', async (t) => {
  const folder = join(workbench(t).folder, 'data', 'dev-ca')
  const made = await developmentCertificate(folder, 'Box.example.test', NOW)

  await t.test('is for this machine, and short-lived', async () => {
    const leaf = new X509Certificate(readFileSync(made.file))
    assert.deepEqual(made.names, ['localhost', 'box.example.test', '127.0.0.1', '::1'])
    assert.equal(
      leaf.subjectAltName,
      'DNS:localhost, DNS:box.example.test, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1',
    )
    assert.ok((leaf.validToDate.getTime() - leaf.validFromDate.getTime()) / DAY_MS <= 398)
    assert.equal(leaf.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1')
    assert.equal(made.isNew, true)
  })

  await t.test('holds in a strict client, for every name it has', async (t) => {
    const { pairs, warnings } = await loadKeyPairs([source(made.file, null)], NOW)
    assert.deepEqual(warnings, [])
    const port = await listen(t, new CertificateStore(pairs, {}))
    for (const host of made.names) {
      const socket = connect({
        port,
        host: '127.0.0.1',
        ca: readFileSync(made.caFile),
        servername: host.includes('.test') || host === 'localhost' ? host : '',
        checkServerIdentity: () => undefined,
      })
      await once(socket, 'secureConnect')
      assert.equal(socket.authorized, true)
      assert.ok(
        new X509Certificate(pairs[0]!.chain)[
          host.includes('.test') || host === 'localhost' ? 'checkHost' : 'checkIP'
        ](host),
      )
      socket.destroy()
    }
  })

  await t.test('is accepted by the strict check of OpenSSL', { skip: skipped('openssl') }, async () => {
    const verified = spawnSync('openssl', ['verify', '-x509_strict', '-CAfile', made.caFile, made.file])
    assert.equal(verified.status, 0, String(verified.stderr))
  })

  await t.test('its CA can vouch for nothing else', { skip: skipped('openssl') }, async () => {
    const key = readFileSync(join(folder, 'ca-key.pem'), 'utf8')
    const forged = await makeLeaf(
      { certificate: readFileSync(made.caFile, 'utf8'), key },
      ['bank.example.test'],
      ['192.0.2.1'],
      NOW,
      90,
    )
    const file = join(folder, 'forged.pem')
    writeFileSync(file, forged.certificate)
    const verified = spawnSync('openssl', ['verify', '-CAfile', made.caFile, file], { encoding: 'utf8' })
    rmSync(file)
    assert.match(verified.stderr, /permitted subtree violation/)
  })

  await t.test('is readable only by its owner, also after its mode was changed', async () => {
    chmodSync(folder, 0o755)
    chmodSync(made.file, 0o644)
    await developmentCertificate(folder, 'box.example.test', NOW)
    assert.deepEqual(
      [folder, made.file, join(folder, 'ca-key.pem')].map((path) => statSync(path).mode & 0o777),
      [0o700, 0o600, 0o600],
    )
  })

  // Each change wakes the watcher, which reads the files again: it would never end.
  await t.test('changes nothing where nothing is to be changed', async () => {
    const changes = () =>
      [folder, made.file, made.caFile, join(folder, 'ca-key.pem')].map(
        (path) => statSync(path, { bigint: true }).ctimeNs,
      )
    const before = changes()
    await developmentCertificate(folder, 'box.example.test', NOW)
    assert.deepEqual(changes(), before)
  })

  const leafOf = () => new X509Certificate(readFileSync(made.file)).fingerprint256
  await t.test('is used again, and renewed with the same CA before it expires', async () => {
    const before = leafOf()
    const again = await developmentCertificate(folder, 'box.example.test', NOW + 300 * DAY_MS)
    assert.deepEqual([leafOf(), again.isNew, again.caFingerprint], [before, false, made.caFingerprint])
    const renewed = await developmentCertificate(folder, 'box.example.test', NOW + 380 * DAY_MS)
    assert.deepEqual([renewed.isNew, renewed.caFingerprint], [false, made.caFingerprint])
    assert.notEqual(leafOf(), before)
  })

  await t.test('keeps its CA where the host has another name', async () => {
    const moved = await developmentCertificate(folder, 'other-box', NOW)
    assert.equal(moved.caFingerprint, made.caFingerprint)
    assert.deepEqual(moved.names, ['localhost', '127.0.0.1', '::1'])
  })

  await t.test('a damaged one is made again', async () => {
    const before = leafOf()
    writeFileSync(made.file, 'half a fi')
    assert.equal((await developmentCertificate(folder, 'box.example.test', NOW)).isNew, false)
    assert.notEqual(leafOf(), before)
    writeFileSync(join(folder, 'ca-key.pem'), (await makeCa('x', ['x'], NOW, 1)).key)
    const anew = await developmentCertificate(folder, 'box.example.test', NOW)
    assert.equal(anew.isNew, true)
    assert.notEqual(anew.caFingerprint, made.caFingerprint)
  })

  await t.test('two that start at once end up with one', async (t) => {
    const fresh = join(workbench(t).folder, 'dev-ca')
    const both = await Promise.all([1, 2, 3].map(() => developmentCertificate(fresh, 'box', NOW)))
    assert.equal(new Set(both.map(({ caFingerprint }) => caFingerprint)).size, 1)
    const { warnings } = await loadKeyPairs([source(both[0]!.file, null)], NOW)
    assert.deepEqual(warnings, [])
  })

  await t.test('a folder that cannot be written is said, with what to do', async (t) => {
    const { file } = workbench(t)
    const blocked = join(file('data', 'a file'), 'dev-ca')
    await assert.rejects(developmentCertificate(blocked, 'box', NOW), {
      code: 'DEVELOPMENT_CA',
      message:
        /cannot be kept in .*dev-ca .*give --data a folder that can be written, or bring a certificate/,
    })
    assert.ok(!existsSync(blocked))
  })
})

function source(
  certificateFile: string,
  keyFile: string | null,
  passphrase: string | null = null,
): KeyPairSource {
  return { certificateFile, keyFile, passphrase }
}

function pem(label: string): string {
  return `-----BEGIN ${label}-----\nAAAA\n-----END ${label}-----\n`
}

function workbench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-certificates-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string, content: string | Buffer): string => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  return { folder, file, load: (from: KeyPairSource) => loadKeyPairs([from], NOW) }
}

async function refuses(loading: Promise<unknown>, what: RegExp): Promise<void> {
  await assert.rejects(loading, (error) => {
    assert.ok(error instanceof Fault && error.code === 'CERTIFICATE_INVALID', String(error))
    assert.match(error.message, what)
    return true
  })
}

function fingerprint({ certificate }: MadeCertificate): string {
  return new X509Certificate(certificate).fingerprint256
}

/** As the listener does it: the default options, and a context by name and hello. */
async function listen(t: Test, store: CertificateStore): Promise<number> {
  const hellos = new AsyncLocalStorage<ClientHello | null>()
  const server = createServer({
    ...store.default,
    SNICallback: (name, done) => done(null, store.contextFor(name, hellos.getStore())),
  })
  server.on('secureConnection', (socket: TLSSocket) => socket.on('error', () => undefined))
  server.on('tlsClientError', (_, socket) => socket.destroy())
  const outer = createTcpServer({ pauseOnConnect: true }, (socket) => {
    socket.once('readable', () => {
      const bytes: Buffer = socket.read()
      socket.unshift(bytes)
      const parsed = parseClientHello(bytes.subarray(5)) // one record, as these clients send it
      const hello = parsed.kind === 'client-hello' ? parsed.hello : null
      hellos.run(hello, () => server.emit('connection', socket))
    })
  })
  outer.listen(0, '127.0.0.1')
  await once(outer, 'listening')
  t.teardown(() => outer.close())
  return (outer.address() as AddressInfo).port
}

/** Says the fingerprint of the certificate it got. */
async function serve(t: Test, store: CertificateStore) {
  const port = await listen(t, store)
  return async (serverName: string | null, options: ConnectionOptions = {}): Promise<string> => {
    const servername = serverName ?? ''
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, servername, ...options })
    await once(socket, 'secureConnect')
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }
}

const RSA: Partial<KeyPair> = { keyType: 'rsa', signatureScheme: null }
