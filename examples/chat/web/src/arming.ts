// Nothing moves under the hand (rule S3): a control that answers or sends counts only when it has stood still.
import { arming } from '../../../../crates/inbox/src/page/arming.js';

export const hand = arming('.ask button, .wait-bar button, .banner button, .composer [type="submit"]');
