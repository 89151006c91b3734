/** Priority of a response, RFC 9218 §4. */
export interface Priority {
  /** 0 is the most urgent, 7 the least. */
  readonly urgency: number
  /** The client can use parts of the body, so that responses may take turns. */
  readonly isIncremental: boolean
}

export interface PriorityUpdate {
  readonly stream: number
  /** Null if the field value is malformed. The stream then keeps its priority. */
  readonly priority: Priority | null
}

/** The payload of a PRIORITY_UPDATE frame (RFC 9218 §7.1), or null if it is too short. */
export function readPriorityUpdate(payload: Uint8Array): PriorityUpdate | null {
  if (payload.length < 4) return null
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.length)
  return { stream: bytes.readUInt32BE(0) & 0x7fff_ffff, priority: parsePriority(bytes.toString('latin1', 4)) }
}

/**
 * The value of a Priority field, or null if it is malformed. Unknown parameters and invalid values of known ones are
 * ignored. The same priority is the same object.
 */
export function parsePriority(value: string): Priority | null {
  return COMMON.get(value) ?? parseDictionary(value)
}

/** RFC 8941 §4.2.2. A later member replaces an earlier one of the same name, valid or not. */
function parseDictionary(value: string): Priority | null {
  const text = value.replace(/^ +/, '')
  let urgency = DEFAULT_PRIORITY.urgency
  let isIncremental = DEFAULT_PRIORITY.isIncremental
  let end = 0
  for (const { 0: member, 1: key, 2: item = TRUE, index } of text.matchAll(MEMBER)) {
    if (key === 'u') urgency = URGENCY.test(item) ? Number(item.slice(1)) : DEFAULT_PRIORITY.urgency
    if (key === 'i') isIncremental = item === TRUE
    end = index + member.length
  }
  return end === text.length ? priorityOf(urgency, isIncremental) : null
}

function priorityOf(urgency: number, isIncremental: boolean): Priority {
  return PRIORITIES[2 * urgency + (isIncremental ? 1 : 0)]!
}

/** What browsers send. */
function common(): ReadonlyMap<string, Priority> {
  return new Map(
    PRIORITIES.flatMap((priority) => {
      const { urgency, isIncremental } = priority
      const values = isIncremental ? [`u=${urgency}, i`, `u=${urgency},i`] : [`u=${urgency}`]
      return values.map((value) => [value, priority] as const)
    }),
  )
}

/** One member of a dictionary with the comma after it: its key, and its value with the equals sign. */
function memberPattern(): RegExp {
  const key = '[a-z*][a-z0-9_.*-]*'
  const number = String.raw`-?(?:\d{1,12}\.\d{1,3}|\d{1,15})`
  const string = String.raw`"(?:[ !#-[\]-~]|\\["\\])*"`
  const token = String.raw`[A-Za-z*][\w!#$%&'*+.^|~:/\x60-]*`
  const digit = '[A-Za-z0-9+/]'
  const bytes = `:(?:${digit}{4})*(?:${digit}{2}(?:==)?|${digit}{3}=?)?:`
  const item = String.raw`(?:${number}|${string}|${token}|${bytes}|\?[01])`
  const parameters = `(?:; *${key}(?:=${item})?)*`
  const innerList = String.raw`\( *(?:${item}${parameters}(?: +${item}${parameters})* *)?\)`
  return new RegExp(
    String.raw`(${key})(=(?:${innerList}|${item}))?${parameters}[ \t]*(?:$|,[ \t]*(?!$))`,
    'gy',
  )
}

export const DEFAULT_PRIORITY: Priority = { urgency: 3, isIncremental: false }
const PRIORITIES: readonly Priority[] = Array.from({ length: 16 }, (_, i) =>
  i === 6 ? DEFAULT_PRIORITY : { urgency: i >> 1, isIncremental: i % 2 === 1 },
)
const COMMON: ReadonlyMap<string, Priority> = common()
/** A key without a value is true. */
const TRUE = '=?1'
const URGENCY = /^=(?:0*[0-7]|-0+)$/
const MEMBER: RegExp = memberPattern()
