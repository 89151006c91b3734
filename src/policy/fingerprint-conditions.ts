import { type Place, shown } from '../shared/problem.ts'
import { all, glob, type Test } from './condition-form.ts'
import { Glob, matchesAny } from './glob.ts'

export function hello(place: Place): Test | null {
  const kinds = all(place, (item) => item.choice(NO_HELLO))
  if (kinds === null) return null
  return ({ facts }) => {
    const { noHello } = facts.print.connection
    return noHello !== null && kinds.includes(noHello)
  }
}

export function ja4(place: Place): Test | null {
  const is = fingerprints(place, '_', [10, 12, 12], 't13d1516h2_8daaf6152771_e5627efa2ab1')
  return is && (({ facts }) => is(facts.print.connection.ja4))
}

export function stable(place: Place): Test | null {
  const is = fingerprints(place, '-', [3, 10, 12, 12], 'gs1-t13d1514h2-8daaf6152771-de4a06bb82e3')
  return is && (({ facts }) => is(facts.print.connection.stable))
}

export function ja4h(place: Place): Test | null {
  const is = fingerprints(place, '_', [12, 12, 12, 12], 'ge11nn05enus_9ed1ff1f7b03_*_*')
  return is && (({ facts }) => is(facts.print.ja4h))
}

export function http2(place: Place): Test | null {
  const globs = all(place, (item) => glob(item, 'an HTTP/2 fingerprint', 'exact'))
  if (globs === null) return null
  return ({ facts }) => {
    const { http2: print } = facts.print.connection
    return print !== null && matchesAny(globs, print)
  }
}

type FingerprintTest = (print: string | null) => boolean

/** `lengths`: the lengths of the parts between separators. A star matches any text within one part. */
function fingerprints(
  place: Place,
  separator: string,
  lengths: readonly number[],
  sample: string,
): FingerprintTest | null {
  const patterns = all(place, (item) => {
    const pattern = item.text(`a fingerprint, like ${sample}`)
    if (pattern === null || isFingerprint(pattern, separator, lengths)) return pattern
    return item.refuse(
      `${shown(pattern)} is not a valid fingerprint of this kind; expected one like ${sample}`,
    )
  })
  if (patterns === null) return null
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map((each) => Glob.parse(each, 'exact'))
  return (print) => print !== null && (exact.has(print) || matchesAny(globs, print))
}

function isFingerprint(pattern: string, separator: string, lengths: readonly number[]): boolean {
  const parts = pattern.split(separator)
  if (parts.length !== lengths.length) return false
  return parts.every((part, index) => {
    const length = lengths[index]!
    const isHash = index > 0 && length === HASH_LENGTH
    if (!(isHash ? HASH_PART : NAMED_PART).test(part)) return false
    const literal = part.replaceAll('*', '').length
    return part.includes('*') ? literal <= length : literal === length
  })
}

export const NO_HELLO = ['malformed', 'not-tls'] as const
const HASH_LENGTH = 12
const HASH_PART = /^[0-9a-f*]+$/
const NAMED_PART = /^[0-9a-zA-Z*]+$/
