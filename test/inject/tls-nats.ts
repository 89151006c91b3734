import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startGuardedNats } from '../config/nats-server.ts'
import { plainEnvironment, run, temporaryFolder } from '../e2e/programs.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'

/** A NATS that requires a client certificate, and the files that its clients need. */
export async function startTlsNats(t: Test) {
  const ca = await testCa()
  const leaf = await testLeaf(ca, ['localhost'])
  const folder = temporaryFolder(t)
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content, { mode: 0o600 })
    return join(folder, name)
  }
  const caFile = file('ca.crt', ca.certificate)
  const certificate = file('tls.crt', leaf.certificate)
  const key = file('tls.key', leaf.key)
  const client = { certificateFile: join(folder, 'client.crt'), keyFile: join(folder, 'client.key') }
  const { status, stderr } = await run(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', '/CN=gatehouse', '-addext', 'extendedKeyUsage=clientAuth'],
      ...['-keyout', client.keyFile, '-out', client.certificateFile],
    ],
    { env: plainEnvironment(folder) },
  )
  assert.equal(status, 0, stderr)
  const files = `cert_file: "${certificate}", key_file: "${key}", ca_file: "${client.certificateFile}"`
  const port = await startGuardedNats(t, (text) => `tls { ${files}, verify: true }\n${text}`)
  return { url: `tls://localhost:${port}`, caFile, client }
}

export function textIn(file: string): string {
  return readFileSync(file, 'utf8')
}
