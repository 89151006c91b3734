import { test } from 'tap'
import { assertFloors, judged, RECORDED } from './floors.ts'

test('ours alone, as they are judged', async () => {
  assertFloors(await judged([RECORDED]), {
    people: { calledAgentMax: 0, calledHumanMin: 1 },
    // One request for a sign-in page, and an SDK that is all Axios.
    programs: { calledAgentMin: 0.987 },
    // An event stream with the bytes of an MCP client's.
    libraries: { calledEitherMin: 1, calledAgentMax: 0.006 },
    crawlers: { calledAgentMin: 0.95 },
    // Five connections with a Safari profile show nothing that Safari does not.
    imitators: { flaggedMin: 0.93, calledHumanMax: 0.065 },
    namedMin: 0.992,
    marked: { calledAgentMin: 1 },
    eceMax: 0.03,
  })
})
