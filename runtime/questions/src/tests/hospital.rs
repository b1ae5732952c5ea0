//! Questions about a hospital that were written before the grammar was tried on them, with the draft that each one
//! means.

use super::models::Model;
use super::*;

const MEMBERS: &str = "\
cube    admissions | admissions; Admissions | stays; hospitalizations | count=admissions.count label=admissions.admission_id joined=admissions,patients,doctors,wards
cube    lab_tests | lab_tests; Lab tests | | count=lab_tests.count label=lab_tests.test_id joined=lab_tests,patients,doctors
cube    doctors | doctors; Doctors | physicians | count=doctors.count label=doctors.doctor_name joined=doctors
cube    patients | patients; Patients | | count=patients.count label=patients.patient_name joined=patients
cube    wards | wards; Wards | | count=wards.count label=wards.ward_name joined=wards
text    admissions.admission_id | admission_id; Admission ID
time    admissions.admitted_at | admitted_at; Admission time
time    admissions.discharged_at | discharged_at; Discharge time
text    admissions.diagnosis | diagnosis; Diagnosis | condition; illness
text    admissions.admission_type | admission_type; Admission type
boolean admissions.readmitted | readmitted; Readmitted
number  admissions.nights | nights; Length of stay
measure admissions.count | count; Admissions | stays; hospitalizations | aggregation=count
measure admissions.readmissions | readmissions; Readmissions | | aggregation=count
measure admissions.emergency_admissions | emergency_admissions; Emergency admissions | | aggregation=count filtered=admissions.admission_type
measure admissions.total_nights | total_nights; Nights | bed nights | aggregation=sum combines=admissions.nights
measure admissions.average_stay | average_stay; Average length of stay | | aggregation=average combines=admissions.nights
measure admissions.longest_stay | longest_stay; Longest stay | | aggregation=maximum combines=admissions.nights
measure admissions.total_cost | total_cost; Treatment cost | spending; costs | aggregation=sum
measure admissions.average_cost | average_cost; Average treatment cost | | aggregation=average
measure admissions.average_wait | average_wait; Average waiting time | | aggregation=average
measure admissions.patients_treated | patients_treated; Patients treated | | aggregation=distinct
text    doctors.doctor_id | doctor_id; Doctor ID
text    doctors.doctor_name | doctor_name; Doctor | physician
text    doctors.specialty | specialty; Specialty
text    doctors.grade | grade; Grade
time    doctors.hired_on | hired_on; Hire date
measure doctors.count | count; Doctors | physicians | aggregation=count
text    lab_tests.test_id | test_id; Test ID
text    lab_tests.test_name | test_name; Test | kind of test; test type
time    lab_tests.tested_on | tested_on; Test date
text    lab_tests.result | result; Result
measure lab_tests.count | count; Lab tests | tests | aggregation=count
measure lab_tests.abnormal | abnormal; Abnormal tests | | aggregation=count filtered=lab_tests.result
measure lab_tests.average_turnaround | average_turnaround; Average turnaround | | aggregation=average
measure lab_tests.slowest_turnaround | slowest_turnaround; Slowest turnaround | | aggregation=maximum
measure lab_tests.total_fee | total_fee; Lab fees | | aggregation=sum
measure lab_tests.average_fee | average_fee; Average lab fee | | aggregation=average
text    patients.patient_id | patient_id; Patient ID
text    patients.patient_name | patient_name; Patient
text    patients.sex | sex; Sex | gender
number  patients.birth_year | birth_year; Birth year
text    patients.city | city; City | town
text    patients.insurance | insurance; Insurance | payer
text    patients.blood_type | blood_type; Blood type
measure patients.count | count; Patients | | aggregation=count
measure patients.average_birth_year | average_birth_year; Average birth year | | aggregation=average combines=patients.birth_year
text    wards.ward_id | ward_id; Ward ID
text    wards.ward_name | ward_name; Ward
text    wards.department | department; Department
text    wards.building | building; Building
measure wards.count | count; Wards | | aggregation=count
measure wards.total_beds | total_beds; Beds | | aggregation=sum
metric  readmission_rate | readmission_rate; Readmission rate | | share cube=admissions ratio=admissions.readmissions/admissions.count
metric  abnormal_rate | abnormal_rate; Abnormal rate | | share cube=lab_tests ratio=lab_tests.abnormal/lab_tests.count
metric  cost_per_night | cost_per_night; Cost per night | | cube=admissions ratio=admissions.total_cost/admissions.total_nights
";

const VALUES: [(&str, &str, u64); 16] = [
    ("admissions.diagnosis", "stroke", 300),
    ("admissions.diagnosis", "hip fracture", 200),
    ("admissions.admission_type", "emergency", 900),
    ("admissions.admission_type", "planned", 800),
    ("lab_tests.test_name", "blood count", 700),
    ("lab_tests.test_name", "MRI scan", 150),
    ("lab_tests.result", "abnormal", 400),
    ("doctors.specialty", "Oncology", 100),
    ("doctors.specialty", "Intensive Care", 120),
    ("wards.department", "Oncology", 110),
    ("wards.department", "Intensive Care", 130),
    ("wards.building", "Main", 500),
    ("patients.city", "Ashford", 90),
    ("patients.insurance", "Uninsured", 70),
    ("patients.insurance", "Private", 200),
    ("patients.sex", "female", 800),
];

fn check(questions: &[(&str, &str)]) {
    let model = Model { members: MEMBERS, values: &VALUES, newest: date(2026, 11, 27) };
    let mistakes = model.mistakes(questions);
    assert!(mistakes.is_empty(), "{} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

/// Questions that the rules of other models also cover.
#[test]
fn plain_hospital_questions_are_interpreted_correctly() {
    check(&[
        ("average length of stay by ward", "admissions.average_stay by wards.ward_name"),
        (
            "top 5 doctors by number of patients",
            "admissions.patients_treated by doctors.doctor_name order admissions.patients_treated desc limit 5",
        ),
        ("number of female patients per city", "patients.count by patients.city where patients.sex equals female"),
        ("beds per building", "wards.total_beds by wards.building"),
        ("doctors hired since 2020", "doctors.count in 2020-01-01.. of doctors.hired_on"),
        ("busiest ward in 2026", "admissions.count by wards.ward_name in 2026 order admissions.count desc limit 1"),
        ("list all wards in the Main building", "wards.count by wards.ward_name where wards.building equals Main"),
        (
            "readmitted patients by insurance",
            "admissions.patients_treated by patients.insurance where admissions.readmitted equals true",
        ),
        (
            "patients by blood type sorted alphabetically",
            "patients.count by patients.blood_type order patients.blood_type asc",
        ),
        ("what is the average stay", "admissions.average_stay"),
    ]);
}

#[test]
fn exact_titles_precede_cubes_with_adjectives() {
    check(&[
        ("longest stay for stroke", "admissions.longest_stay where admissions.diagnosis equals stroke"),
        ("longest stay by ward", "admissions.longest_stay by wards.ward_name"),
    ]);
}

#[test]
fn several_words_that_rank_need_several_measures() {
    check(&[
        ("highest and lowest treatment cost by ward", "? highest treatment cost"),
        ("minimum and maximum stay by ward", "? minimum stay"),
        ("average and maximum birth year by city", "? maximum birth year"),
        ("best and worst wards by readmission rate", "? best and worst"),
        ("top 3 and bottom 3 wards by readmission rate", "? top 3 and bottom"),
    ]);
}

#[test]
fn dimensions_in_the_name_of_a_measure_do_not_group() {
    check(&[
        ("share of abnormal results by test", "abnormal_rate by lab_tests.test_name"),
        ("abnormal results by test", "lab_tests.abnormal by lab_tests.test_name"),
        (
            "blood count tests with abnormal result per month in 2025",
            "lab_tests.abnormal by month where lab_tests.test_name equals blood count in 2025",
        ),
    ]);
}

#[test]
fn words_are_values_only_if_they_are_names() {
    check(&[
        ("how many patients are still in hospital", "? hospital"),
        ("how many patients are satisfied", "? satisfied"),
        ("doctors are on holiday", "? holiday"),
        ("patients where the city is rome", "patients.count where patients.city equals rome"),
        ("patients named smith", "patients.count where patients.patient_name equals smith"),
    ]);
}

#[test]
fn verbs_that_name_a_time_are_events() {
    check(&[
        (
            "which doctor admitted the most patients in October",
            "admissions.patients_treated by doctors.doctor_name in 2026-10 of admissions.admitted_at order admissions.patients_treated desc limit 1",
        ),
        ("how many patients are admitted per ward", "admissions.patients_treated by wards.ward_name"),
        (
            "how many patients were admitted in October",
            "admissions.patients_treated in 2026-10 of admissions.admitted_at",
        ),
        (
            "how many patients were discharged in October",
            "admissions.patients_treated in 2026-10 of admissions.discharged_at",
        ),
    ]);
}

#[test]
fn changes_of_each_period_are_series() {
    check(&[
        ("how does the number of admissions change month over month", "admissions.count by month in 2025 vs -1 month"),
        ("admissions by month compared to the previous month", "admissions.count by month in 2025 vs -1 month"),
        (
            "how did the number of admissions change compared to the previous year",
            "admissions.count in this year vs -1 year",
        ),
    ]);
}

#[test]
fn lacks_and_divisions_lead_to_choices() {
    check(&[
        ("patients without insurance", "? without insurance"),
        ("patients without a blood type", "patients.count where patients.blood_type notSet "),
        ("treatment cost per patient by insurance", "? per patient"),
        ("treatment cost per ward", "admissions.total_cost by wards.ward_name"),
        ("cost per night by ward", "cost_per_night by wards.ward_name"),
    ]);
}

#[test]
fn questions_that_needed_no_clarification_are_answered() {
    check(&[
        ("what share of admissions is emergency", "admissions.count by admissions.admission_type totals"),
        ("average tests per day in 2026", "? tests"),
        ("tests ordered by each specialty", "lab_tests.count by doctors.specialty"),
        (
            "slowest test on average",
            "lab_tests.average_turnaround by lab_tests.test_name order lab_tests.average_turnaround desc limit 1",
        ),
        ("MRI scans per doctor", "lab_tests.count by doctors.doctor_name where lab_tests.test_name equals MRI scan"),
        (
            "average cost per night in the Intensive Care department",
            "cost_per_night where wards.department equals Intensive Care",
        ),
        (
            "wards with an average stay above 6 nights",
            "admissions.average_stay by wards.ward_name where admissions.average_stay gt 6",
        ),
        ("wich ward has the most beds", "wards.total_beds by wards.ward_name order wards.total_beds desc limit 1"),
        ("admissions by day in the week of 2026-07-01", "admissions.count by day in 2026-W27"),
    ]);
}
