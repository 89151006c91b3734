import { boundByGnap } from './credentials.ts'
import { walk } from './walk.ts'

walk('a token of GNAP, bound to a key', boundByGnap)
