import type { Socket } from 'node:net'
import type { RequestContext } from '../http/router.ts'
import { beginStream } from '../auth/stream-life.ts'
import { sayEvents } from '../events/event-stream.ts'
import { A2AError } from './a2a-error.ts'
import { VERSION } from './protocol.ts'
import type { A2AAnswer, Streaming } from './methods.ts'
import type { A2ACall, A2AService } from './service.ts'

/** Throws if the client speaks another protocol version (A2A 1.0 §3.6). No version means 0.3. */
export function checkVersion(ctx: RequestContext): void {
  const given = ctx.get('A2A-Version') || new URLSearchParams(ctx.querystring).get('A2A-Version') || ''
  // Only major and minor count; a patch number is ignored.
  const [, said = given.slice(0, 20)] = /^(\d{1,5}\.\d{1,5})(?:\.\d{1,5})?$/.exec(given.trim()) ?? []
  if (said === VERSION) return
  const why =
    given === ''
      ? `no A2A-Version given (which means 0.3), but this server supports ${VERSION}: send the header A2A-Version: ${VERSION}`
      : `unsupported A2A version ${said}: send the header A2A-Version: ${VERSION}`
  throw new A2AError('VERSION_NOT_SUPPORTED', why, {
    metadata: { requestedVersion: said || '0.3', supportedVersions: VERSION },
  })
}

/** Runs a method with a single response. Stops it if the client disconnects. */
export function answered(
  method: A2AAnswer,
  params: unknown,
  ctx: RequestContext,
  service: A2AService,
): Promise<unknown> {
  const stop = new AbortController()
  ctx.res.once('close', () => stop.abort())
  return method.run(params, callOf(ctx, stop.signal), service)
}

/** Starts a stream and formats each event with `form`. If this rejects, no stream has started. */
export async function streamed(
  method: Streaming,
  params: unknown,
  ctx: RequestContext,
  service: A2AService,
  form: EventForm,
): Promise<void> {
  const { over } = beginStream(ctx, service.management, MAY)
  const values = await method.run(params, callOf(ctx, over), service)
  sayEvents(ctx, eventsOf(values, form))
}

interface EventForm {
  value(value: unknown): string
  /** Formats an error that occurred after the status was sent. */
  error(error: unknown): string
}

async function* eventsOf(
  values: AsyncGenerator<unknown, void, undefined>,
  form: EventForm,
): AsyncGenerator<string, void, undefined> {
  try {
    for await (const value of values) yield form.value(value)
  } catch (error) {
    yield form.error(error)
  }
}

function callOf({ state, req }: RequestContext, stop: AbortSignal): A2ACall {
  const { principal, requestId, address } = state
  const caller = { principal, requestId, address }
  return { caller, stop, waiting: (work) => silently(req.socket, work) }
}

/** Disables the socket's idle timeout during `work`, because the connection is silent while it waits. */
async function silently<Result>(socket: Socket, work: () => Promise<Result>): Promise<Result> {
  const { timeout = 0 } = socket
  socket.setTimeout(0)
  try {
    return await work()
  } finally {
    socket.setTimeout(timeout)
  }
}

const MAY = ['mcp'] as const
