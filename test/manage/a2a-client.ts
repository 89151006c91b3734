import {
  type AgentCard,
  type Message,
  Role,
  SendMessageRequest,
  type StreamResponse,
  type Task,
} from '@a2a-js/sdk'
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'
import type { TestManagement } from './management.ts'

export const BINDINGS = ['JSONRPC', 'HTTP+JSON'] as const
export type BindingName = (typeof BINDINGS)[number]

/** The SDK's own client, which has found out from the card how to speak. */
export async function clientOf(
  { url }: TestManagement,
  bearer: string,
  binding: BindingName,
  scheme = 'Bearer',
): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('authorization', `${scheme} ${bearer}`)
    return fetch(input, { ...init, headers })
  }
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
    preferredTransports: [binding],
    // What is public is fetched without a key.
    cardResolver: new DefaultAgentCardResolver({}),
  })
  return new ClientFactory(options).createFromUrl(url)
}

export function cardOf({ url }: TestManagement): Promise<AgentCard> {
  return new DefaultAgentCardResolver({}).resolve(url)
}

let number = 0

/** A message with this part; `more` goes into the request. */
export function sending(part: object, more: Readonly<Record<string, unknown>> = {}): SendMessageRequest {
  const { contextId, taskId, ...others } = more
  return SendMessageRequest.fromJSON({
    message: { messageId: `m${number++}`, role: 'ROLE_USER', parts: [part], contextId, taskId },
    ...others,
  })
}

export function calling(
  tool: string,
  given: unknown,
  more: Readonly<Record<string, unknown>> = {},
): SendMessageRequest {
  return sending({ data: { tool, arguments: given } }, more)
}

/** What the data parts hold. */
export function dataIn({ parts }: Pick<Message, 'parts'>): unknown[] {
  return parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as unknown] : []))
}

export function resultsIn({ artifacts }: Task): unknown[] {
  return artifacts.flatMap(dataIn)
}

export function isMessage(answer: Message | Task): answer is Message {
  return 'role' in answer && answer.role === Role.ROLE_AGENT
}

export function asMessage(answer: Message | Task): Message {
  if (!isMessage(answer)) throw new Error('it is a task')
  return answer
}

export function asTask(answer: Message | Task): Task {
  if (isMessage(answer)) throw new Error('it is a message')
  return answer
}

export async function all(
  stream: AsyncGenerator<StreamResponse, void, undefined>,
): Promise<StreamResponse[]> {
  const found: StreamResponse[] = []
  for await (const event of stream) found.push(event)
  return found
}
