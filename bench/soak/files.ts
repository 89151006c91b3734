import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type MadeCertificate, makeCa, makeLeaf } from '../../src/proxy/tls/certificate-maker.ts'

/** What Gatehouse loads, and loads anew: a policy, a certificate in plain files, and one as Kubernetes mounts secrets. */
export class SoakFiles {
  readonly folder: string
  readonly policyFile: string
  readonly certificates: readonly { readonly certFile: string; readonly keyFile: string }[]
  readonly ca: string
  readonly #leaves: Leaves
  #revision = 0
  #mounts = 0
  readonly #turns = { plain: 0, mounted: 0 }

  static async make(folder: string): Promise<SoakFiles> {
    const nowMs = Date.now()
    const ca = await makeCa('Soak CA', ['example.test'], nowMs, 10)
    const pair = (name: string) =>
      Promise.all([1, 2].map(() => makeLeaf(ca, [name], ['127.0.0.1'], nowMs, 9)))
    const [plain, mounted] = await Promise.all([pair(SERVER_NAMES[0]), pair(SERVER_NAMES[1])])
    return new SoakFiles(folder, ca.certificate, { plain, mounted })
  }

  private constructor(folder: string, ca: string, leaves: Leaves) {
    this.folder = folder
    this.ca = ca
    this.#leaves = leaves
    for (const name of ['policy', 'plain', 'mounted']) mkdirSync(join(folder, name))
    this.policyFile = join(folder, 'policy', 'policy.yaml')
    const file = (kind: string, name: string) => join(folder, kind, name)
    this.certificates = ['plain', 'mounted'].map((kind) => {
      return { certFile: file(kind, 'tls.crt'), keyFile: file(kind, 'tls.key') }
    })
    this.writePolicy('plainly')
    this.nextCertificate('plain')
    this.nextCertificate('mounted')
    for (const name of ['tls.crt', 'tls.key']) symlinkSync(`..data/${name}`, file('mounted', name))
  }

  writePolicy(how: 'plainly' | 'by rename'): void {
    this.#writeFile(this.policyFile, policy(`good-${++this.#revision}`), how)
  }

  /** Says something new, and cannot be used. */
  writeBadPolicy(): void {
    this.#writeFile(
      this.policyFile,
      `${policy('bad')}  - {name: bad, when: {pth: /}, action: pass}\n`,
      'plainly',
    )
  }

  /** Returns the new one. */
  nextCertificate(name: CertificateName): string {
    const { certificate, key } = this.#leaves[name][++this.#turns[name] % 2]!
    if (name === 'mounted') this.#mount(certificate, key)
    else {
      const [{ certFile, keyFile }] = this.certificates as [SoakFiles['certificates'][number]]
      writeFileSync(certFile, certificate)
      writeFileSync(keyFile, key)
    }
    return certificate
  }

  /** A key that belongs to another certificate. */
  writeBadKey(): void {
    writeFileSync(this.certificates[0]!.keyFile, this.#leaves.mounted[0]!.key)
  }

  /** As a kubelet does: a new folder, and one link that is turned to it. */
  #mount(certificate: string, key: string): void {
    const at = (name: string) => join(this.folder, 'mounted', name)
    const name = `..${++this.#mounts}`
    mkdirSync(at(name))
    writeFileSync(at(`${name}/tls.crt`), certificate)
    writeFileSync(at(`${name}/tls.key`), key)
    symlinkSync(name, at('..data_tmp'))
    renameSync(at('..data_tmp'), at('..data'))
    rmSync(at(`..${this.#mounts - 1}`), { recursive: true, force: true })
  }

  #writeFile(file: string, text: string, how: 'plainly' | 'by rename'): void {
    if (how === 'plainly') return writeFileSync(file, text)
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
}

export function policy(revision: string): string {
  return `otherwise: {tag: {headers: {X-Agent-Revision: ${revision}}}}
rules:
  - {name: pass, when: {path: '/pass/*'}, action: pass}
  - {name: h2c, when: {path: '/h2c/*'}, action: {route: {upstream: h2c}}}
  - {name: impatient, when: {path: '/impatient/*'}, action: {route: {upstream: impatient}}}
  - {name: blocked, when: {path: '/blocked/*'}, action: {block: {status: 451}}}
  - {name: redirected, when: {path: '/redirected/*'}, action: {redirect: {to: /elsewhere}}}
  - {name: limited, when: {path: '/limited/*'}, action: {rate_limit: {per: fingerprint, requests: 2, window: 1s}}}
  - {name: tarpit, when: {path: '/tarpit/*'}, action: {tarpit: {delay: 300ms, connections_max: 20}}}
`
}

type Leaves = Readonly<Record<CertificateName, readonly MadeCertificate[]>>
export type CertificateName = 'plain' | 'mounted'
export const SERVER_NAMES = ['plain.example.test', 'mounted.example.test'] as const
