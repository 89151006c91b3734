import type { DeliveryTold, DueDelivery } from '../../../store/events/deliveries.ts'
import type { WebhookHealth } from '../../../store/events/webhooks.ts'
import type { Posted } from './courier.ts'

/** An attempt that has ended, and is not written down yet. */
export interface Ended {
  readonly told: DeliveryTold
  readonly posted: Posted
  /** It was sent to find out whether the endpoint is back. */
  readonly isProbe: boolean
}

/** Where a delivery stands after another attempt. */
export function toldOf(
  delivery: DueDelivery,
  posted: Posted,
  retryBaseMs: number,
  nowMs: number,
): DeliveryTold {
  const { atMs, durationMs, status, error, response } = posted
  const attempts = delivery.attempts + 1
  const log = [...delivery.log, { atMs, durationMs, status, error, response }].slice(-LOG_MAX)
  const told = { delivery, attempts, log, atMs: nowMs }
  if (posted.outcome === 'taken') return { ...told, outcome: 'delivered', nextAtMs: null, isOutOfLine: true }
  if (attempts >= ATTEMPTS_MAX) return { ...told, outcome: 'failed', nextAtMs: null, isOutOfLine: true }
  const delayMs = Math.max(retryBaseMs * 3 ** (attempts - 1) * jitter(), posted.retryAfterMs ?? 0)
  const nextAtMs = Math.round(nowMs + delayMs)
  return { ...told, outcome: null, nextAtMs, isOutOfLine: attempts >= IN_LINE_ATTEMPTS }
}

/** How an endpoint does after these attempts, which ended in this order; `disabled`: why it is, from now on. */
export function healthAfter(
  before: WebhookHealth,
  attempts: readonly Posted[],
  {
    isProbe,
    retryBaseMs,
    nowMs,
  }: { readonly isProbe: boolean; readonly retryBaseMs: number; readonly nowMs: number },
): { readonly health: WebhookHealth; readonly disabled: string | null } {
  const counted = attempts.reduce(withAttempt, before)
  // Those that were under way when it was paused say nothing new.
  const isNews = isProbe || counted.pausedUntilMs === null || counted.pausedUntilMs <= nowMs
  const paused =
    counted.failures >= PROBED_FAILURES && isNews ? longerPaused(counted, retryBaseMs, nowMs) : counted
  const untilMs = Math.max(...attempts.map(({ retryAfterMs }) => nowMs + (retryAfterMs ?? 0)))
  const health =
    untilMs > nowMs ? { ...paused, pausedUntilMs: Math.max(untilMs, paused.pausedUntilMs ?? 0) } : paused
  return { health, disabled: disabledFor(health, attempts, nowMs) }
}

/** One attempt at a time tells whether it is back. */
export function isProbed({ failures }: WebhookHealth): boolean {
  return failures >= PROBED_FAILURES
}

function withAttempt(health: WebhookHealth, { outcome, atMs }: Posted): WebhookHealth {
  if (outcome !== 'taken')
    return { ...health, failures: health.failures + 1, failingSinceMs: health.failingSinceMs ?? atMs }
  return { ...health, ...WELL, lastDeliveryAtMs: atMs }
}

function longerPaused(health: WebhookHealth, retryBaseMs: number, nowMs: number): WebhookHealth {
  const { pauses } = health
  const pauseMs = Math.min(retryBaseMs * 2 ** pauses, Math.max(PAUSE_MAX_MS, retryBaseMs)) * jitter()
  return { ...health, pauses: pauses + 1, pausedUntilMs: Math.round(nowMs + pauseMs) }
}

function disabledFor(
  { failingSinceMs }: WebhookHealth,
  attempts: readonly Posted[],
  nowMs: number,
): string | null {
  if (attempts.some(({ status }) => status === GONE)) return 'its URL answers 410 (Gone)'
  if (failingSinceMs === null || nowMs - failingSinceMs < FAILING_MAX_MS) return null
  return `nothing could be delivered for five days, the last time because ${attempts.at(-1)!.error}`
}

/** Not for all at the same moment. */
function jitter(): number {
  return 0.75 + Math.random() / 2
}

/** With delays of ten seconds, and three times the last one: some 27 hours. */
export const ATTEMPTS_MAX = 10
/** A delivery that has failed so often no longer holds up those behind it. */
export const IN_LINE_ATTEMPTS = 3
const PROBED_FAILURES = 5
const PAUSE_MAX_MS = 300_000
const FAILING_MAX_MS = 5 * 86_400_000
/** With what was asked for by hand there may be more. */
const LOG_MAX = 12
const GONE = 410
const WELL = { failures: 0, pauses: 0, failingSinceMs: null, pausedUntilMs: null }
