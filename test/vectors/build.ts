import { parseArgs } from 'node:util'
import { FRAMING_CASES } from './cases/framing.ts'
import { JA4_CASES } from './cases/ja4.ts'
import { JA4H_CASES } from './cases/ja4h.ts'
import { JA4S_CASES } from './cases/ja4s.ts'
import { JA4X_CASES } from './cases/ja4x.ts'
import { certificate } from './certificate-builder.ts'
import { framingVector, ja4hOf, ja4Of, ja4sOf, ja4xOf } from './derive.ts'
import { clientHello, serverHello } from './hello-builder.ts'
import { readVectors, type Vectors, writeVectors } from './vector.ts'

/** What the tables of cases give: the input in bytes, and the hashes of what was written by hand. */
export function buildVectors(): Vectors {
  return {
    ja4: JA4_CASES.map(({ hello, r, ro, transport = 'tcp', ...cited }) => ({
      ...cited,
      source: SOURCE,
      transport,
      handshake_hex: clientHello(hello, transport).toString('hex'),
      ja4: ja4Of(r),
      ja4_r: r,
      ja4_o: ja4Of(ro),
      ja4_ro: ro,
    })),
    ja4s: JA4S_CASES.map(({ hello, r, transport = 'tcp', ...cited }) => ({
      ...cited,
      source: SOURCE,
      transport,
      handshake_hex: serverHello(hello, transport).toString('hex'),
      ja4s: ja4sOf(r),
      ja4s_r: r,
    })),
    ja4h: JA4H_CASES.map(({ r, method = 'GET', version = '11', headers, ...cited }) => ({
      ...cited,
      source: SOURCE,
      method,
      version,
      headers,
      ja4h: ja4hOf(r),
      ja4h_r: r.join('_'),
    })),
    ja4x: JA4X_CASES.map(({ certificate: plan, r, ...cited }) => ({
      ...cited,
      source: SOURCE,
      der_hex: certificate(plan).toString('hex'),
      ja4x: ja4xOf(r),
      ja4x_r: r,
    })),
    framing: FRAMING_CASES.map((framing) => framingVector(framing, SOURCE)),
  }
}

function together(first: Vectors, then: Vectors): Vectors {
  return {
    ja4: [...first.ja4, ...then.ja4],
    ja4s: [...first.ja4s, ...then.ja4s],
    ja4h: [...first.ja4h, ...then.ja4h],
    ja4x: [...first.ja4x, ...then.ja4x],
    framing: [...first.framing, ...then.framing],
  }
}

/** The cases that are there and were not built. */
function recordedVectors(): Vectors {
  const all = readVectors()
  const isRecorded = ({ source }: { source: string }) => source !== SOURCE
  return {
    ja4: all.ja4.filter(isRecorded),
    ja4s: all.ja4s.filter(isRecorded),
    ja4h: all.ja4h.filter(isRecorded),
    ja4x: all.ja4x.filter(isRecorded),
    framing: all.framing.filter(isRecorded),
  }
}

const SOURCE = 'built by test/vectors/build.ts'

/**
 * `npm run vectors` writes the vectors anew from the tables in cases/ and leaves those recorded from real programs
 * alone; with `-- --record` it records them anew too, which takes openssl, curl, python3 and tshark.
 */
if (import.meta.main) {
  const { values } = parseArgs({ options: { record: { type: 'boolean', default: false } } })
  const { recordVectors } = await import('./record.ts')
  writeVectors(together(buildVectors(), values.record ? await recordVectors() : recordedVectors()))
}
