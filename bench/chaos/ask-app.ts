import { once } from 'node:events'
import { request } from 'node:https'
import type { View } from '../soak/app-view.ts'
import { SERVER_NAMES } from '../soak/files.ts'
import { encodePlan, type Plan, pathOf, planFor, type Route } from '../soak/plan.ts'
import type { Random } from '../soak/random.ts'

/** One request to the app on a connection of its own: what the app was told of it, or what it was answered instead. */
export async function askApp({
  port,
  ca,
  route,
  random,
}: {
  readonly port: number
  readonly ca: string
  readonly route: Route
  readonly random: Random
}): Promise<View | string> {
  const plan: Plan = { ...planFor(random, 'get'), route, framing: 'length' }
  const sent = request({
    ...{ host: '127.0.0.1', port, servername: SERVER_NAMES[0], ca, agent: false },
    path: pathOf(plan),
    headers: { 'x-soak-plan': encodePlan(plan), cookie: 'a=1; b=2' },
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  }).end()
  const [response] = await once(sent, 'response')
  let text = ''
  for await (const piece of response.setEncoding('latin1')) text += piece
  const isRight = response.statusCode === 200 && response.headers['x-soak-id'] === plan.id
  return isRight
    ? JSON.parse(response.headers['x-soak-view'])
    : `${response.statusCode} ${text.slice(0, 300)}`
}

const ANSWER_MS_MAX = 10_000
