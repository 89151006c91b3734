import { isOurHeader } from '../classify/verdict/our-headers.ts'
import { type Place, shown } from '../shared/problem.ts'
import { AddressRanges, parseAddressRange } from '../wire/address-ranges.ts'
import { foldHeaderName, isFoldedName } from '../wire/header-name.ts'
import { asciiHint, hostOf } from '../wire/host.ts'
import { isRegisteredMethod } from '../wire/methods.ts'
import { all, glob, hold, type Test } from './condition-form.ts'
import { asBytes, Glob, matchesAny } from './glob.ts'
import { decoded, sentForm } from './path-form.ts'

export function method(place: Place): Test | null {
  const methods = all(place, (item) => {
    const name = item.text('a method, like GET')
    if (name === null || METHOD.test(name)) return name
    return item.refuse(`is ${shown(name)}; a method is written in upper-case letters, like GET`)
  })
  return methods && (({ facts: { method } }) => methods.includes(method) || isMiscased(method, methods))
}

/** Some upstream apps ignore the case of methods and take `purge` for PURGE. */
function isMiscased(method: string, methods: readonly string[]): boolean {
  return !isRegisteredMethod(method) && methods.includes(method.toUpperCase())
}

export function address(place: Place): Test | null {
  const parsed = all(place, (item) => {
    const text = item.text('an address or a range, like 192.0.2.0/24')
    if (text === null) return null
    return (
      parseAddressRange(text) ??
      item.refuse(`is ${shown(text)}; expected an address or a range, like 192.0.2.0/24`)
    )
  })
  if (parsed === null) return null
  const ranges = new AddressRanges(parsed)
  return (request) => ranges.has(request.address)
}

export function host(place: Place): Test | null {
  const globs = all(place, (item) => {
    const name = item.text('a host, like shop.example.test or *.example.test')
    if (name === null) return null
    // A pattern without a star is one host. It is normalized as the host of a request is.
    if (HOST.test(name))
      return Glob.parse(name.includes('*') ? name.replace(/\.$/, '') : hostOf(name), 'ignore-case')
    return item.refuse(
      `is ${shown(name)}; expected a host without a scheme, a port or a path${asciiHint(name)}`,
    )
  })
  return globs && (({ host, hostEnd }) => host !== null && matchesAny(globs, host, 0, hostEnd))
}

export function path(place: Place): Test | null {
  const globs = all(place, pathGlobs)
  if (globs === null) return null
  const sent = globs.map((each) => each.sent)
  const plain = globs.every((each) => each.plain === each.sent) ? sent : globs.map((each) => each.plain)
  return plain === sent && sent.length === 1 ? onePath(sent[0]!) : onePathOf(sent, plain)
}

/** What most rules test: without a list, 200 rules take half the memory. */
function onePath(glob: Glob): Test {
  return (request) => {
    if (!request.isPlain || request.plainPath === null) return glob.matches(request.path, 0, request.pathEnd)
    return glob.matches(request.plainPath)
  }
}

function onePathOf(sent: readonly Glob[], plain: readonly Glob[]): Test {
  return (request) => {
    if (!request.isPlain || request.plainPath === null)
      return matchesAny(sent, request.path, 0, request.pathEnd)
    return matchesAny(plain, request.plainPath)
  }
}

export function userAgent(place: Place): Test | null {
  const globs = all(place, (item) => glob(item, 'a User-Agent, like *bot*', 'ignore-case'))
  return globs && ((request) => request.userAgent !== null && matchesAny(globs, request.userAgent))
}

export function header(place: Place): Test | null {
  const tests: Test[] = []
  for (const [sent, member] of place.entries()) {
    const name = foldHeaderName(sent)
    if (!TOKEN.test(sent)) member.refuse(`${shown(sent)} is not a valid header name`)
    else if (isOurHeader(name))
      member.refuse('is a header that only the proxy sets; use `forged` to match clients that send one')
    else {
      const test = headerTest(name, member)
      if (test !== null) tests.push(test)
    }
  }
  return (request) => hold(tests, request)
}

function headerTest(name: string, place: Place): Test | null {
  if (place.isMapping) {
    const members = place.members(['present'])
    if (place.isEmpty) return place.refuse('must be a value, {present: true} or {present: false}')
    const wanted = members.get('present')?.boolean() ?? null
    if (wanted === null) return null
    return ({ facts }) => hasHeader(facts.rawHeaders, name, null) === wanted
  }
  const globs = all(place, (item) => glob(item, 'a header value, like text/*', 'ignore-case'))
  return globs && (({ facts }) => hasHeader(facts.rawHeaders, name, globs))
}

interface PathGlobs {
  readonly sent: Glob
  readonly plain: Glob
}

/** The pattern for each form of a path. A pattern with `%20` means the same as one with a blank. */
function pathGlobs(place: Place): PathGlobs | null {
  const pattern = place.text('a path, like /api/*')
  if (pattern === null) return null
  if (!/^[/*]/.test(pattern)) return place.refuse(`is ${shown(pattern)}; a path must start with /`)
  if (/[?#]/.test(pattern))
    return place.refuse('contains a query, but only the path is compared; remove the query')
  if (NEVER_PLAIN.test(pattern))
    return place.refuse(
      'can never match: paths are normalized and contain no \\, //, /./, /../ or ;parameters',
    )
  const literals = asBytes(pattern).split('*')
  const sent = new Glob(literals.map(sentForm))
  return { sent, plain: pattern.includes('%') ? new Glob(literals.map(decoded)) : sent }
}

/** Whether a header of this folded name was sent. With `globs`, one of them must match its value. */
function hasHeader(rawHeaders: readonly string[], name: string, globs: readonly Glob[] | null): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!isFoldedName(rawHeaders[i]!, name)) continue
    if (globs === null || matchesAny(globs, rawHeaders[i + 1]!.toLowerCase())) return true
  }
  return false
}

const METHOD = /^[A-Z][A-Z-]*$/
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
const HOST = /^(?:[\w*.-]+|\[[0-9a-f:.*]+\])$/i
const NEVER_PLAIN = /[\\;]|\/\/|\/\.{1,2}(?:\/|$)/
