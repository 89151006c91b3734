import type { StartupConfig } from '../../config/config.ts'
import type { CertificateConfig } from '../../config/proxy.ts'
import { CertificateKeeper } from '../../inject/certificate-keeper.ts'
import type { InjectMetrics } from '../../inject/inject-metrics.ts'
import { apiPlace, KubernetesApi } from '../../inject/kubernetes-api.ts'
import type { Log } from '../../shared/log.ts'
import type { Io } from '../../terminal/io.ts'
import { CertificatePart } from '../live-parts.ts'
import { Reloader } from '../reload.ts'
import { keyPairSource } from '../startup.ts'

/** The certificate of the webhook's port: from files, or self-made and kept in a Secret. */
export interface InjectCertificate {
  /** Resolves when a certificate is available, with the reloaders for its files. */
  start(): Promise<readonly Reloader<unknown>[]>
  unready(): readonly string[]
  close(): void
}

interface CertificateLinks {
  readonly use: (pair: { readonly chain: string; readonly key: string }) => void
  readonly counts: InjectMetrics
  readonly log: Log
}

export function ownCertificate(
  { inject }: StartupConfig,
  env: Io['env'],
  { use, counts, log }: CertificateLinks,
): InjectCertificate {
  const first = Promise.withResolvers<readonly Reloader<unknown>[]>()
  const keeper = new CertificateKeeper(inject, {
    api: new KubernetesApi(apiPlace(env, inject.serviceAccountFolder)),
    use(pair) {
      use(pair)
      first.resolve([])
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
    close: () => keeper.close(),
  }
}

export function certificateInFiles(
  config: StartupConfig,
  source: CertificateConfig,
  { use, counts, log }: CertificateLinks,
): InjectCertificate {
  const part = new CertificatePart(
    'inject-certificate',
    [keyPairSource(source)],
    config.data.dir,
    log,
    ([pair]) => {
      counts.certificates({ leaf: pair!.notAfterMs })
      use(pair!)
    },
  )
  return {
    async start() {
      const { value, reloader } = await Reloader.load(part, log)
      part.use(value)
      return [reloader as Reloader<unknown>]
    },
    unready() {
      const expired = part.inUse.filter(({ notAfterMs }) => notAfterMs <= Date.now())
      return expired.map(({ name }) => `${name} has expired`)
    },
    close: () => undefined,
  }
}
