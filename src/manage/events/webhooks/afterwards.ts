import type { DeliveryTold, DueDelivery } from '../../../store/events/deliveries.ts'
import type { WebhookHealth } from '../../../store/events/webhooks.ts'
import type { Posted } from './courier.ts'

/** A finished attempt whose result is not stored yet. */
export interface Ended {
  readonly told: DeliveryTold
  readonly posted: Posted
  /** The attempt was a probe to find out whether the endpoint works again. */
  readonly isProbe: boolean
}

/** The state of a delivery after another attempt. */
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

/**
 * The health of an endpoint after these attempts, in the order in which they ended. `disabled` is the reason
 * if the webhook has to be disabled.
 */
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
  // Attempts that were in flight when the endpoint was paused must not extend the pause.
  const isNews = isProbe || counted.pausedUntilMs === null || counted.pausedUntilMs <= nowMs
  const paused =
    counted.failures >= PROBED_FAILURES && isNews ? longerPaused(counted, retryBaseMs, nowMs) : counted
  const untilMs = Math.max(...attempts.map(({ retryAfterMs }) => nowMs + (retryAfterMs ?? 0)))
  const health =
    untilMs > nowMs ? { ...paused, pausedUntilMs: Math.max(untilMs, paused.pausedUntilMs ?? 0) } : paused
  return { health, disabled: disabledFor(health, attempts, nowMs) }
}

/** Only one attempt at a time probes the endpoint. */
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

/** Spreads retries so that they do not happen at the same moment. */
function jitter(): number {
  return 0.75 + Math.random() / 2
}

/** About 27 hours: the first delay is 10 s, and each one is three times the one before. */
const ATTEMPTS_MAX = 10
/** After this many failures, a delivery no longer blocks the ones behind it. */
const IN_LINE_ATTEMPTS = 3
const PROBED_FAILURES = 5
const PAUSE_MAX_MS = 300_000
const FAILING_MAX_MS = 5 * 86_400_000
/** Higher than `ATTEMPTS_MAX`, because an administrator may trigger more attempts. */
const LOG_MAX = 12
const GONE = 410
const WELL = { failures: 0, pauses: 0, failingSinceMs: null, pausedUntilMs: null }
