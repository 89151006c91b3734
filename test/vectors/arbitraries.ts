import fc from 'fast-check'
import { timeBox } from '../time-box.ts'
import {
  alpn,
  type Extension,
  extension,
  type HelloPlan,
  type ServerHelloPlan,
  serverName,
  signatureAlgorithms,
  supportedGroups,
  supportedVersions,
} from './hello-builder.ts'

/** For each property the time that it may take; the rest of its runs are left out then. */
export const BUDGET = timeBox(1_000, 2_000)

export const greaseValues = fc.integer({ min: 0, max: 15 }).map((high) => (high * 16 + 10) * 0x0101)

const values = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(0x1301, 0x1302, 0xc02b, 0xc02f, 0x0005, 0x0017, 0x0023, 0xff01) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 0xffff }) },
  { weight: 2, arbitrary: greaseValues },
  { weight: 1, arbitrary: fc.constantFrom(0x0a1a, 0xfa0a, 0xeeee, 0x0b0b) },
)

const versions = fc.oneof(
  greaseValues,
  fc.constantFrom(0x0304, 0x0303, 0x0302, 0xfefc, 0xfefd, 0xfeff, 0x7f1c),
)

const protocolNames = fc.oneof(
  fc.constantFrom('h2', 'http/1.1', 'q', 'H3', '').map((name) => Buffer.from(name)),
  fc.uint8Array({ maxLength: 5 }).map((name) => Buffer.from(name)),
)

const brokenExtensions = fc
  .tuple(fc.constantFrom(0x0000, 0x000a, 0x000d, 0x0010, 0x002b), fc.uint8Array({ maxLength: 8 }))
  .map(([type, body]) => extension(type, body))

const extensions = fc.oneof(
  { weight: 8, arbitrary: values.map((type) => extension(type)) },
  { weight: 1, arbitrary: fc.constantFrom('example.test', '192.0.2.1', '').map(serverName) },
  { weight: 1, arbitrary: fc.array(protocolNames, { maxLength: 3 }).map((names) => alpn(...names)) },
  { weight: 1, arbitrary: fc.array(versions).map((list) => supportedVersions(...list)) },
  { weight: 1, arbitrary: fc.array(values).map((list) => signatureAlgorithms(...list)) },
  { weight: 1, arbitrary: fc.array(values).map((list) => supportedGroups(...list)) },
  { weight: 1, arbitrary: brokenExtensions },
)

/** Up to more than the counts of a fingerprint can say, and now and then no block at all. */
const extensionLists: fc.Arbitrary<Extension[] | null> = fc.option(
  fc.array(extensions, { maxLength: 110, size: '+1' }),
  { freq: 20 },
)

/** Hellos with everything that a fingerprint uses: GREASE and near misses, known extensions twice, empty or broken. */
export const helloPlans: fc.Arbitrary<HelloPlan> = fc.record({
  legacyVersion: fc.constantFrom(0x0300, 0x0301, 0x0302, 0x0303, 0x0304, 0xfefd, 0xfeff, 0x0100),
  sessionId: fc.uint8Array({ maxLength: 32 }),
  cookie: fc.uint8Array({ maxLength: 32 }),
  ciphers: fc.array(values, { maxLength: 120, size: '+1' }),
  extensions: extensionLists,
})

const answers: fc.Arbitrary<Extension[] | null> = fc.option(
  fc.array(
    fc.oneof(
      values.map((type) => extension(type)),
      protocolNames.map((name) => alpn(name)),
      versions.map((version) => extension(0x002b, Buffer.of(version >> 8, version))),
    ),
    { maxLength: 110 },
  ),
)

export const serverHelloPlans: fc.Arbitrary<ServerHelloPlan> = fc.record({
  legacyVersion: fc.constantFrom(0x0300, 0x0301, 0x0302, 0x0303, 0xfefd, 0xfeff),
  cipher: values,
  extensions: answers,
})

/** Sizes in which to cut a stream: down to single bytes. */
export const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 400, size: '+2' })
