import type { StartupConfig } from '../config.ts'
import { CertificateKeeper } from '../inject/certificate-keeper.ts'
import type { InjectMetrics } from '../inject/inject-metrics.ts'
import { apiPlace, KubernetesApi } from '../inject/kubernetes-api.ts'
import type { Log } from '../log.ts'
import { FileWatch } from './file-watch.ts'
import type { Io } from './io.ts'
import { CertificatePart } from './live-parts.ts'
import { Reloader, type ReloadStatus } from './reload.ts'

/** The certificate of the webhook's port, wherever it comes from. */
export interface InjectCertificate {
  /** Resolves when there is one. */
  start(): Promise<void>
  unready(): readonly string[]
  statuses(): readonly ReloadStatus[]
  reload(): void
  close(): void
}

export interface CertificateLinks {
  readonly use: (pair: { readonly chain: string; readonly key: string }) => void
  readonly counts: InjectMetrics
  readonly log: Log
}

export function ownCertificate(
  config: StartupConfig,
  env: Io['env'],
  { use, counts, log }: CertificateLinks,
): InjectCertificate {
  const { serviceAccountFolder } = config.inject
  const api = new KubernetesApi(apiPlace(env, serviceAccountFolder))
  const first = Promise.withResolvers<void>()
  const keeper = new CertificateKeeper(config.inject, {
    api,
    use: (pair) => {
      use(pair)
      first.resolve()
    },
    metrics: counts,
    log,
    nowMs: Date.now,
  })
  return {
    start() {
      void keeper.run()
      return first.promise
    },
    unready: () => keeper.unready(),
    statuses: () => [],
    reload: () => undefined,
    close: () => keeper.close(),
  }
}

export function certificateInFiles(
  config: StartupConfig,
  { use, counts, log }: CertificateLinks,
): InjectCertificate {
  const { certificateFile, keyFile, passphrase } = config.inject.certificate!
  const source = { certificateFile, keyFile, passphrase: passphrase?.reveal() ?? null }
  const part = new CertificatePart('inject-certificate', [source], config.data.dir, log, ([pair]) => {
    counts.certificates({ leaf: pair!.notAfterMs })
    use(pair!)
  })
  let reloader: Reloader<Awaited<ReturnType<typeof part.load>>> | null = null
  let watch: FileWatch | null = null
  return {
    async start() {
      const loaded = await Reloader.load(part, log)
      reloader = loaded.reloader
      part.use(loaded.value)
      watch = new FileWatch(await part.files(), () => void loaded.reloader.check(false))
      void loaded.reloader.check(false) // for what has changed since it was loaded
    },
    unready() {
      const isExpired = part.inUse.some(({ notAfterMs }) => notAfterMs <= Date.now())
      return isExpired ? [`${certificateFile} has expired`] : []
    },
    statuses: () => (reloader === null ? [] : [reloader.status]),
    reload: () => void reloader?.check(true),
    close: () => watch?.close(),
  }
}
