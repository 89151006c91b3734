import { once } from 'node:events'
import { connect } from 'node:tls'
import { type CertificateName, SERVER_NAMES, type SoakFiles } from './files.ts'
import type { SoakedGateway } from './gateway.ts'
import type { Random } from './random.ts'
import { until } from './until.ts'

/** Files that change under a gateway, for better and for worse; what does not go as it should is a problem. */
export class Reloads {
  /** How often there was each. */
  readonly counts = new Map<string, number>()
  readonly problems: string[] = []
  readonly #files: SoakFiles
  readonly #random: Random
  #gateway: SoakedGateway

  constructor(gateway: SoakedGateway, files: SoakFiles, random: Random) {
    this.#gateway = gateway
    this.#files = files
    this.#random = random
  }

  /** From here on it is another one. */
  of(gateway: SoakedGateway): this {
    this.#gateway = gateway
    return this
  }

  async one(): Promise<void> {
    const what = this.#random.pick(RELOADS)
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
    const files = this.#files
    switch (what) {
      case 'policy, written':
        return this.#expect(what, 'policy', 'loaded', () => files.writePolicy('plainly'))
      case 'policy, renamed':
        return this.#expect(what, 'policy', 'loaded', () => files.writePolicy('by rename'))
      case 'policy, bad':
        await this.#expect(what, 'policy', 'failed', () => files.writeBadPolicy())
        await this.#expectCurrent('policy', 0)
        await this.#expect('policy, mended', 'policy', 'loaded', () => files.writePolicy('plainly'))
        return this.#expectCurrent('policy', 1)
      case 'certificate, written':
        return this.#replaceCertificate(what, 'plain')
      case 'certificate, swapped':
        return this.#replaceCertificate(what, 'mounted')
      case 'certificate, bad':
        await this.#expect(what, 'certificates', 'failed', () => files.writeBadKey())
        await this.#expectCurrent('certificates', 0)
        await this.#replaceCertificate('certificate, mended', 'plain')
        return this.#expectCurrent('certificates', 1)
      case 'SIGHUP':
        return this.#expect(what, 'ticket-keys', 'loaded', () => this.#gateway.signal('SIGHUP'))
    }
  }

  /** Changes without waiting for them, because Gatehouse may be slow; the files are good at the end. */
  unseen(): void {
    const what = this.#random.pick(UNSEEN)
    const files = this.#files
    if (what === 'SIGHUP') this.#gateway.signal('SIGHUP')
    else if (what === 'policy') {
      files.writeBadPolicy()
      files.writePolicy(this.#random.pick(['plainly', 'by rename']))
    } else {
      if (what === 'plain') files.writeBadKey()
      files.nextCertificate(what)
    }
  }

  async #replaceCertificate(what: string, name: CertificateName): Promise<void> {
    let wanted = ''
    await this.#expect(what, 'certificates', 'loaded', () => {
      wanted = this.#files.nextCertificate(name)
    })
    const serverName = name === 'plain' ? SERVER_NAMES[0] : SERVER_NAMES[1]
    const isServed = async () => {
      for (let i = 0; i < LEAVES_ASKED; i++) if ((await this.#leafOf(serverName)) !== wanted) return false
      return true
    }
    if (!(await until(isServed, RELOAD_MS_MAX))) this.problems.push(`${what}: the old one is still served`)
  }

  /** Does it, and waits until Gatehouse says that it has noticed. */
  async #expect(what: string, part: string, outcome: string, act: () => void): Promise<void> {
    const count = async () =>
      (await this.#gateway.metrics()).sum('reload_total', `what="${part}"`, `outcome="${outcome}"`)
    const before = await count()
    act()
    if (!(await until(async () => (await count()) > before, RELOAD_MS_MAX)))
      this.problems.push(`${what}: never ${outcome}`)
  }

  async #expectCurrent(part: string, wanted: 0 | 1): Promise<void> {
    const is = (await this.#gateway.metrics()).sum('reload_current', `what="${part}"`)
    if (is !== wanted) this.problems.push(`${part}: reload_current is ${is} and should be ${wanted}`)
  }

  async #leafOf(servername: string): Promise<string> {
    const { port } = this.#gateway
    const socket = connect({ port, host: '127.0.0.1', servername, ca: this.#files.ca })
    try {
      await once(socket, 'secureConnect', { signal: AbortSignal.timeout(RELOAD_MS_MAX) })
      return socket.getPeerX509Certificate()!.toString()
    } catch {
      return '' // a worker that was killed; a client that is lost in another way is the clients' to notice
    } finally {
      socket.destroy()
    }
  }
}

const RELOADS = [
  ...(['policy, written', 'policy, renamed', 'policy, bad'] as const),
  ...(['certificate, written', 'certificate, swapped', 'certificate, bad', 'SIGHUP'] as const),
] as const
const UNSEEN = ['policy', 'plain', 'mounted', 'SIGHUP'] as const
/** More often than there are workers, so that each is likely to be among them. */
const LEAVES_ASKED = 5
/** A watcher tells at once; where it does not, the poll comes after 30 s, which would be a finding. */
const RELOAD_MS_MAX = 20_000
