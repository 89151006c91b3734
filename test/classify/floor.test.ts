import { test } from 'tap'
import { assertFloors, judged, RECORDED } from './floors.ts'

test('ours alone, as they are judged', async () => {
  assertFloors(await judged([RECORDED]), {
    people: { calledAgentMax: 0, calledHumanMin: 1 },
    programs: { calledAgentMin: 1 },
    libraries: { calledEitherMin: 1, calledAgentMax: 0.01 },
    crawlers: { calledAgentMin: 0.95 },
    // Five connections with a Safari profile show nothing that Safari does not.
    imitators: { flaggedMin: 0.7, calledHumanMax: 0.25 },
    namedMin: 1,
    marked: { calledAgentMin: 1 },
    // 9 of the 12 that are `human` here are programs, far more than it is calibrated for.
    eceMax: 0.055,
  })
})
