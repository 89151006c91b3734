import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import { CertificateSecret } from './certificate-secret.ts'
import type { InjectMetrics } from './inject-metrics.ts'
import type { KubernetesApi } from './kubernetes-api.ts'
import { bundleOf, notAfterMs, type OwnCertificate, stepDue, take } from './own-certificate.ts'
import { announceCa } from './webhook-configuration.ts'

interface KeeperSettings {
  readonly service: string
  /** `null`: the namespace of the service account. */
  readonly namespace: string | null
  readonly secret: string
  readonly webhook: string
}

interface KeeperLinks {
  readonly api: KubernetesApi
  /** Called with the certificate for new connections. */
  readonly use: (pair: { readonly chain: string; readonly key: string }) => void
  readonly metrics: InjectMetrics
  readonly log: Log
  readonly nowMs: () => number
}

/**
 * Keeps the self-made certificate in a Secret that all replicas poll. Any replica that sees a due step
 * performs it; if several do, the first write wins. The API server learns of a CA before any replica uses a
 * certificate that the CA signed.
 */
export class CertificateKeeper {
  readonly #settings: KeeperSettings
  readonly #links: KeeperLinks
  readonly #closing = new AbortController()
  #secret: CertificateSecret | null = null
  #inUse: OwnCertificate | null = null
  #announced = ''
  #problem: string | null = null

  constructor(settings: KeeperSettings, links: KeeperLinks) {
    this.#settings = settings
    this.#links = links
  }

  /** Polls until closed; never rejects. */
  async run(): Promise<void> {
    for (let failures = 0; !this.#closing.signal.aborted; ) {
      failures = (await this.#tryLook()) ? 0 : failures + 1
      const usualMs = failures === 0 ? LOOK_MS : Math.min(RETRY_MS * 2 ** (failures - 1), LOOK_MS)
      // Jitter: replicas that started together must not keep polling together.
      const pauseMs = usualMs * (1 + JITTER * (2 * Math.random() - 1))
      await wait(pauseMs, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined)
    }
  }

  close(): void {
    this.#closing.abort()
  }

  /** Why reviews cannot be answered, in words for an operator. */
  unready(): readonly string[] {
    if (this.#inUse === null) return [this.#problem ?? 'there is no certificate yet']
    const isExpired = notAfterMs(this.#inUse.leaf.certificate) <= this.#links.nowMs()
    return isExpired
      ? [`the certificate has expired${this.#problem === null ? '' : `: ${this.#problem}`}`]
      : []
  }

  /** Polls once: uses the stored certificate and performs due steps. Throws a Fault. */
  async look(): Promise<void> {
    const { api, nowMs } = this.#links
    const { service, secret, webhook } = this.#settings
    const namespace = this.#settings.namespace ?? (await api.namespace())
    this.#secret ??= new CertificateSecret(api, namespace, secret)
    const name = `${service}.${namespace}.svc`
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const kept = await this.#secret.read()
      const step = stepDue(kept.own, name, nowMs())
      if (kept.own !== null && step !== 'all') {
        if (this.#announced.includes(kept.own.ca.certificate)) this.#use(kept.own)
        await announceCa(api, webhook, { name: service, namespace }, bundleOf(kept.own))
        this.#announced = bundleOf(kept.own)
        this.#use(kept.own)
      }
      if (step === null) return
      if (await this.#secret.write(kept, await take(step, kept.own, name, nowMs()))) this.#stepped(step)
    }
    throw new Fault('CERTIFICATE_CONTENDED', `the Secret ${secret} changes all the time`)
  }

  async #tryLook(): Promise<boolean> {
    const { metrics, log } = this.#links
    try {
      await this.look()
      metrics.looked('done')
      this.#problem = null
      return true
    } catch (error) {
      metrics.looked('failed')
      const message = error instanceof Error ? error.message : String(error)
      // Log the same problem once, however long it lasts.
      if (message !== this.#problem && error instanceof Fault)
        log.error('the certificate cannot be looked after', { error })
      else if (message !== this.#problem)
        log.error('a look at the certificate failed', { error: error as Error })
      this.#problem = message
      return false
    }
  }

  #use(own: OwnCertificate): void {
    const { use, metrics, log } = this.#links
    if (this.#inUse?.leaf.certificate === own.leaf.certificate) return
    use({ chain: own.leaf.certificate, key: own.leaf.key })
    this.#inUse = own
    const [leaf, ca] = [notAfterMs(own.leaf.certificate), notAfterMs(own.ca.certificate)]
    metrics.certificates({ leaf, ca })
    log.info('the certificate is in use', { notAfter: new Date(leaf).toISOString() })
  }

  #stepped(step: string): void {
    this.#links.metrics.stepped(step)
    this.#links.log.info('the certificate was renewed', { step })
  }
}

const LOOK_MS = 30_000
const RETRY_MS = 1_000
const JITTER = 0.2
/** Each step is followed by another read, and replicas may conflict. */
const TRIES_MAX = 10
