/* Volume: a smoothed gain, then a limiter that never lets a sample above full scale.
 *
 * The limiter has no look-ahead, so it costs no time: the gain falls at once with a peak and
 * rises again over some 60 ms. Below the knee nothing is touched, not by one bit. */
#ifndef UTTERD_LEVEL_H
#define UTTERD_LEVEL_H
#include <math.h>

#define LIMITER_KNEE 0.89125094f /* -1 dBFS */
#define NOISE_PEAK (1.0f / 32767.0f)

struct level {
    float gain;
    float gain_weight;  /* of the target, a sample */
    float peak;
    float peak_release; /* factor a sample */
};

static inline void level_set_rate(struct level *level, double rate) {
    level->gain_weight = (float)(1.0 - exp(-1.0 / (0.005 * rate)));
    level->peak_release = (float)exp(-1.0 / (0.060 * rate));
}

static inline float level_apply(struct level *level, float sample, float target) {
    float distance = target - level->gain;
    level->gain = fabsf(distance) < 1e-4f ? target : level->gain + level->gain_weight * distance;
    float x = sample * level->gain;
    float magnitude = fabsf(x);
    if (!(magnitude < 1e6f)) /* a voice gone mad: NaN and infinity are silence */
        return 0.0f;
    level->peak *= level->peak_release;
    if (magnitude > level->peak)
        level->peak = magnitude;
    if (level->peak <= LIMITER_KNEE)
        return x;
    const float room = 1.0f - LIMITER_KNEE;
    float ceiling = LIMITER_KNEE + room * tanhf((level->peak - LIMITER_KNEE) / room);
    float y = x * (ceiling / level->peak);
    return y > 1.0f ? 1.0f : y < -1.0f ? -1.0f : y;
}
#endif
