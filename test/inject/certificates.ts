import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCa, makeLeaf } from '../../src/proxy/tls/certificate-maker.ts'

/** A CA and a certificate for this machine, as files: `ca.pem`, `tls.crt`, `tls.key`. */
export async function certificateFiles(folder: string, nowMs = Date.now(), names = ['localhost']) {
  const ca = await makeCa('Test CA', names, nowMs, 10)
  const leaf = await makeLeaf(ca, names, ['127.0.0.1'], nowMs, 9)
  mkdirSync(folder, { recursive: true })
  const files = { ca: join(folder, 'ca.pem'), cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  writeFileSync(files.ca, ca.certificate)
  writeFileSync(files.key, leaf.key, { mode: 0o600 })
  writeFileSync(files.cert, leaf.certificate)
  return { ...files, caText: ca.certificate, leaf }
}
