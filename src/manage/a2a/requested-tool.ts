import { JA4_TYPES, wrongInFingerprint } from '../../classify/known/fingerprint-form.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { invalid } from '../http/refusal.ts'
import type { ApiContext } from '../api/context.ts'
import type { Tool, Tools } from '../jobs/tools.ts'
import { A2AError } from './a2a-error.ts'
import type { Message, MessagePart } from './requests.ts'

/** The tool call that a message asks for. */
interface RequestedTool {
  readonly tool: Tool<ApiContext>
  readonly given: unknown
  /** Where the arguments are in the request. */
  readonly pointer: string
}

/**
 * Reads the tool call in a message. A data part `{tool, arguments}` names a tool, and any text beside it is
 * ignored. Without a data part, the text is a User-Agent or a fingerprint to detect. Throws if the message
 * has neither.
 */
export function requestedTool({ parts }: Message, tools: Tools<ApiContext>): RequestedTool {
  const data = placesOf(parts, (part) => part.data != null)
  const texts = placesOf(parts, (part) => part.text != null)
  for (const [index, { url, raw }] of parts.entries())
    if (url != null || raw != null) throw contentType(index, 'files are not supported')
  if (data.length > 1) throw wrong(data[1]!, 'is a second data part: a message can contain only one call')
  if (data.length === 1) return toolIn(parts[data[0]!]!, data[0]!, tools)
  if (texts.length !== 1)
    throw wrong(texts[1]!, 'is a second text: a message can contain only one User-Agent or fingerprint')
  return textIn(parts[texts[0]!]!, texts[0]!, tools)
}

function placesOf(parts: readonly MessagePart[], has: (part: MessagePart) => boolean): readonly number[] {
  return parts.flatMap((part, index) => (has(part) ? [index] : []))
}

function toolIn({ data, mediaType }: MessagePart, index: number, tools: Tools<ApiContext>): RequestedTool {
  checkType(mediaType, JSON_TYPES, index)
  const at = `/message/parts/${index}/data`
  if (typeof data !== 'object' || Array.isArray(data))
    throw invalid([{ pointer: at, detail: 'must be an object with tool and arguments' }])
  const { tool: name, arguments: given, ...others } = data as Readonly<Record<string, unknown>>
  const [other] = Object.keys(others)
  if (other !== undefined)
    throw invalid([
      {
        pointer: `${at}/${other.slice(0, 100)}`,
        detail: 'is not a known member: only tool and arguments are allowed',
      },
    ])
  if (typeof name !== 'string')
    throw invalid([{ pointer: `${at}/tool`, detail: 'must be the name of a tool' }])
  return { tool: toolNamed(name, tools, `${at}/tool`), given, pointer: `${at}/arguments` }
}

function textIn({ text, mediaType }: MessagePart, index: number, tools: Tools<ApiContext>): RequestedTool {
  checkType(mediaType, TEXT_TYPES, index)
  const said = text!.trim()
  const at = `/message/parts/${index}/text`
  if (said === '')
    throw invalid([{ pointer: at, detail: 'is empty: give a User-Agent or a fingerprint (JA4, JA4H, …)' }])
  const type = JA4_TYPES.find((each) => wrongInFingerprint(each, said, false) === null)
  const given = { [type ?? 'user_agent']: said }
  return { tool: toolNamed(DETECT, tools, at), given, pointer: at }
}

function toolNamed(name: string, tools: Tools<ApiContext>, pointer: string): Tool<ApiContext> {
  const tool = tools.find(name)
  if (tool?.protocols.includes('a2a')) return tool
  const names = tools.list.filter(({ protocols }) => protocols.includes('a2a')).map((each) => each.name)
  throw invalid([{ pointer, detail: `names an unknown tool${didYouMean(name, names)}` }])
}

function checkType(mediaType: string | null | undefined, taken: readonly string[], index: number): void {
  const type = (mediaType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (type !== '' && !taken.includes(type)) throw contentType(index, `takes ${taken.join(' or ')}`)
}

function contentType(index: number, detail: string): A2AError {
  return new A2AError('CONTENT_TYPE_NOT_SUPPORTED', `message.parts[${index}] has an unsupported type`, {
    errors: [{ pointer: `/message/parts/${index}`, detail }],
  })
}

function wrong(index: number, detail: string) {
  return invalid([{ pointer: `/message/parts/${index}`, detail }])
}

const DETECT = 'detect_agent'
const JSON_TYPES = ['application/json']
const TEXT_TYPES = ['text/plain']
