import type { App } from '../../../apps/app.ts'
import type { ProxyContext } from '../context.ts'
import type { TermsSite } from './terms-publisher.ts'
import type { Visit } from '../visit.ts'

export function siteOf(
  { snapshot, clock }: Pick<ProxyContext, 'snapshot' | 'clock'>,
  { connection, authority }: Pick<Visit, 'connection' | 'authority'>,
  app: App,
): TermsSite {
  return { snapshot, app, authority, isTls: connection.isTls, nowMs: clock.nowMs }
}
